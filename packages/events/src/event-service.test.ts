import { create } from "@bufbuild/protobuf";
import { Code, type HandlerContext } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import {
	type EventFilter,
	EventFilterSchema,
	ListEventsRequestSchema,
	Severity,
	WatchEventsRequestSchema,
	type WatchEventsResponse,
} from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { Namespace, TypeRegistry } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { MemoryEventStorage } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { EventLog } from "./event-log.ts";
import { createEventService } from "./event-service.ts";
import { artist, happened } from "./events.fixture.ts";

interface Lab {
	readonly runtime: SeededRuntime;
	readonly log: EventLog;
	readonly end: AbortController;
	readonly ended: AbortController;
	list(
		filter?: Partial<EventFilter>,
		limit?: number,
	): Promise<{ names: string[]; hasMore: boolean }>;
	watch(filter?: Partial<EventFilter>): AsyncIterator<WatchEventsResponse>;
}

function lab(mayRead: (id: ID) => boolean = () => true): Lab {
	const runtime = seededRuntime({ seed: 1, nowMs: 1_000_000 });
	const log = new EventLog({
		storage: new MemoryEventStorage(runtime.clock),
		...{ server: "s1", isShared: false, runtime, logger: silentLogger },
	});
	log.start();
	const [end, ended] = [new AbortController(), new AbortController()];
	const service = createEventService({
		log,
		runtime,
		registry: new TypeRegistry([Namespace]),
		readerOf: async () => ({ mayRead: async (id) => mayRead(id), ended: ended.signal }),
	});
	const call = { signal: end.signal } as HandlerContext;
	return {
		...{ runtime, log, end, ended },
		async list(filter = {}, limit = 0) {
			const request = create(ListEventsRequestSchema, {
				filter: create(EventFilterSchema, filter),
				limit,
			});
			const { events = [], hasMore = false } = await runtime.scheduler.run(
				Promise.resolve(service.listEvents(request, call)),
			);
			return { names: events.map((event) => event.resource?.name ?? ""), hasMore };
		},
		watch(filter = {}) {
			const request = create(WatchEventsRequestSchema, {
				filter: create(EventFilterSchema, filter),
			});
			const stream = service.watchEvents(request, call) as AsyncIterable<WatchEventsResponse>;
			return stream[Symbol.asyncIterator]();
		},
	};
}

async function recorded(it: Lab, ...names: readonly string[]): Promise<void> {
	for (const name of names) {
		it.log.record(happened(name));
		await it.runtime.scheduler.advance(10);
	}
}

describe("ListEvents", () => {
	it("returns the newest first, as many as requested, and says whether there are more", async () => {
		const it = lab();
		await recorded(it, "a", "b", "c");
		expect(await it.list()).toEqual({ names: ["c", "b", "a"], hasMore: false });
		expect(await it.list({}, 2)).toEqual({ names: ["c", "b"], hasMore: true });
		expect(await it.list({}, 3)).toEqual({ names: ["c", "b", "a"], hasMore: false });
	});

	it("refuses a limit that is too large, and a resource without a name or a type", async () => {
		const { list } = lab();
		await expect(list({}, 10_001)).rejects.toMatchObject({
			code: Code.InvalidArgument,
			rawMessage: "limit is at most 10,000, got 10001",
		});
		await expect(list({ resource: artist("") })).rejects.toThrow("needs a type and a name");
	});

	it("filters by resource, incarnation, type, tenancy and severity", async () => {
		const it = lab();
		await recorded(it, "a", "b");
		it.log.record(happened("a", { resource: artist("a", "later") }));
		it.log.record(happened("c", { resource: artist("c", "c", "jazz"), severity: "warning" }));
		const { type, tenancy } = artist("a");
		expect((await it.list({ resource: artist("a", "") })).names).toEqual(["a", "a"]);
		expect((await it.list({ resource: artist("a", "later") })).names).toEqual(["a"]);
		// A copy of another region has no events: those of its name are of the resource of this region.
		const copy = { ...artist("a", ""), region: "us-west2" };
		expect((await it.list({ resource: copy })).names).toEqual([]);
		expect((await it.list({ ...(type && { type }) })).names).toHaveLength(4);
		expect((await it.list({ type: { ...type, kind: "Song" } as never })).names).toEqual([]);
		expect((await it.list({ tenancy: { ...tenancy, namespace: "jazz" } as never })).names).toEqual([
			"c",
		]);
		const anywhere = { partition: "*", namespace: "" } as never;
		expect((await it.list({ tenancy: anywhere })).names).toHaveLength(4);
		expect((await it.list({ onlyWarnings: true })).names).toEqual(["c"]);
	});

	it("names a resource of a registered type without its whole tenancy", async () => {
		const it = lab();
		const { type } = Namespace;
		const namespace = { ...artist("jazz"), type: { ...artist("jazz").type, ...type } } as ID;
		it.log.record(
			happened("jazz", { resource: { ...namespace, tenancy: { partition: "default" } } as ID }),
		);
		const { tenancy: _, ...named } = namespace;
		expect((await it.list({ resource: named as ID })).names).toEqual(["jazz"]);
	});

	it("returns only events of resources that the caller may read", async () => {
		const it = lab(({ name }) => name !== "secret");
		await recorded(it, "a", "secret", "b");
		expect(await it.list({}, 2)).toEqual({ names: ["b", "a"], hasMore: false });
		expect((await it.list({ resource: artist("secret") })).names).toEqual([]);
	});
});

describe("WatchEvents", () => {
	const namesOf = (response: IteratorResult<WatchEventsResponse>) =>
		(response.value as WatchEventsResponse).events.map(({ resource }) => resource?.name);

	it("sends what is stored, the oldest first, and then what occurs, with its count", async () => {
		const it = lab();
		await recorded(it, "a", "b");
		const events = it.watch();
		const { scheduler } = it.runtime;
		const first = await scheduler.run(events.next());
		expect(first.value).toMatchObject({ isCurrent: true });
		expect(namesOf(first)).toEqual(["a", "b"]);
		const next = events.next();
		for (let n = 0; n < 5; n++) {
			it.log.record(happened("a", { severity: "normal" }));
		}
		expect((await scheduler.run(next)).value).toMatchObject({
			events: [{ reason: "Booked", count: 6n, severity: Severity.NORMAL, server: "s1" }],
		});
		it.end.abort(new Error("enough"));
		await expect(scheduler.run(events.next())).rejects.toThrow("enough");
	});

	it("sends many stored events in several messages, the last of them current", async () => {
		const it = lab();
		await recorded(it, ...Array.from({ length: 1_100 }, (_, n) => `a${n}`));
		const events = it.watch();
		const sizes: [number, boolean][] = [];
		for (let n = 0; n < 3; n++) {
			const { value } = await it.runtime.scheduler.run(events.next());
			sizes.push([value.events.length, value.isCurrent]);
		}
		expect(sizes).toEqual([
			[500, false],
			[500, false],
			[100, true],
		]);
		await events.return?.();
	});

	it("sends an event that occurs all the time at most four times a second", async () => {
		const it = lab();
		const events = it.watch();
		const { scheduler, clock } = it.runtime;
		await scheduler.run(events.next());
		const untilMs = clock.monotonic() + 10_000;
		let messages = 0;
		const reading = (async () => {
			for (;;) {
				await events.next();
				messages += 1;
			}
		})().catch(() => {});
		while (clock.monotonic() < untilMs) {
			it.log.record(happened("a"));
			await scheduler.advance(5);
		}
		it.end.abort();
		await scheduler.run(reading);
		expect(messages).toBeGreaterThan(30);
		expect(messages).toBeLessThanOrEqual(41);
	});

	it("hides what the caller may not read, and ends when the rights have changed", async () => {
		const it = lab(({ name }) => name !== "secret");
		const { scheduler } = it.runtime;
		const events = it.watch();
		await scheduler.run(events.next());
		const next = events.next();
		await recorded(it, "secret");
		await scheduler.advance(1_000);
		await recorded(it, "open");
		expect(namesOf(await scheduler.run(next))).toEqual(["open"]);
		it.ended.abort();
		await expect(scheduler.run(events.next())).rejects.toMatchObject({
			code: Code.Unauthenticated,
		});
	});
});
