import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import {
	EventLoopScheduler,
	type Runtime,
	scheduleAfterInput,
	systemRandom,
	systemRuntime,
	systemScheduler,
} from "@plinth/runtime";
import { CountedEventLoop, FakeClock } from "@plinth/runtime/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { WatchClosed } from "../errors.ts";
import { defaultStorageLimits } from "../limits.ts";
import type { ListQuery } from "../query.ts";
import { StateStore } from "../state-store/state-store.ts";
import type { WatchEvent } from "../watch-event.ts";
import { Watch } from "./watch.ts";
import type { Delivery } from "./watch-deliveries.ts";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
const query: ListQuery = {
	type,
	tenancy: { partition: "*", namespace: "*" },
	namePrefix: "",
};

let clock: FakeClock;
let scheduled: number;
let store: StateStore;
let runtime: Runtime;

beforeEach(() => {
	clock = new FakeClock();
	scheduled = 0;
	runtime = {
		clock,
		random: systemRandom,
		scheduler: {
			schedule: (task) => {
				scheduled += 1;
				systemScheduler.schedule(task);
			},
			turn: () => undefined,
			scheduleAfterInput: (task) => scheduleAfterInput(systemScheduler, task),
		},
	};
	store = new StateStore(runtime, defaultStorageLimits);
});

function artist(name: string): Resource {
	return create(ResourceSchema, { id: { name, type, tenancy: {} } });
}

function apply(...names: string[]): void {
	const changes = names.map((name) => ({ op: "put" as const, resource: artist(name) }));
	store.apply(store.revision + 1, changes);
}

const { signal: never } = new AbortController();

function watch(of = query, bookmarkIntervalMs?: number, signal = never): Watch {
	const watching = store.watch(of, { signal, bookmarkIntervalMs }, async () => {});
	if (!(watching instanceof Watch)) {
		throw new TypeError("the store watches with a Watch");
	}
	return watching;
}

describe("a watch that waits", () => {
	it("is woken once, however many revisions come in at once", async () => {
		const watching = watch();
		await watching.next();
		const next = watching.next();
		apply("a");
		apply("b");
		apply("c");
		expect(scheduled).toBe(1);
		expect((await next).value).toMatchObject({ resource: { id: { name: "a" } } });
		expect((await watching.next()).value).toMatchObject({ resource: { id: { name: "b" } } });
		expect((await watching.next()).value).toMatchObject({ resource: { id: { name: "c" } } });
		expect(scheduled).toBe(1);
	});

	it("is not woken by other types", async () => {
		const watching = watch({ ...query, type: { group: "demo", kind: "Album" } });
		await watching.next();
		watching.next();
		apply("a");
		expect(scheduled).toBe(0);
	});

	it("is not woken by other names and tenancies, however many watches there are", async () => {
		const others = [
			...Array.from({ length: 1_000 }, (_, at) => ({ ...query, namePrefix: `other-${at}` })),
			{ ...query, namePrefix: "ab" },
			{ ...query, tenancy: { partition: "p", namespace: "*" } },
			{ ...query, tenancy: { partition: "*", namespace: "n" } },
		];
		const concerned = [query, { ...query, namePrefix: "a" }];
		for (const each of [...others, ...concerned].map((of) => watch(of))) {
			await each.next();
			void each.next();
		}
		apply("a");
		expect(scheduled).toBe(concerned.length);
	});

	it("is not cut off by any number of events that do not concern it", async () => {
		store = new StateStore(runtime, { ...defaultStorageLimits, logEvents: 10 });
		const watching = watch({ ...query, namePrefix: "b" });
		await watching.next();
		const next = watching.next();
		for (let at = 0; at < 1_000; at++) {
			apply(`a${at}`);
		}
		apply("b");
		expect((await next).value).toMatchObject({ resource: { id: { name: "b" } }, version: "1001" });
	});

	it("settles overlapping calls of next in order", async () => {
		const watching = watch();
		const results = [watching.next(), watching.next(), watching.next()];
		await results[0];
		apply("a");
		await results[1];
		apply("b");
		const kinds = (await Promise.all(results)).map(({ value }) => value);
		expect(kinds).toMatchObject([
			{ kind: "end-of-snapshot" },
			{ resource: { id: { name: "a" } } },
			{ resource: { id: { name: "b" } } },
		]);
	});

	it("is done for a waiting call when its consumer leaves", async () => {
		const watching = watch();
		await watching.next();
		const next = watching.next();
		await watching.return?.();
		expect(await next).toEqual({ done: true, value: undefined });
		expect(await watching.next()).toEqual({ done: true, value: undefined });
	});
});

describe("an event for many watches", () => {
	it("leaves iterations of the event loop to others: each delivers to a few of them", async () => {
		// Its clock stands still: on a busy machine, the scheduler itself would leave deliveries to the next iteration.
		const scheduler = new EventLoopScheduler(new CountedEventLoop());
		store = new StateStore({ ...systemRuntime, scheduler }, defaultStorageLimits);
		let delivered = 0;
		const waiting: Promise<void>[] = [];
		for (const each of Array.from({ length: 500 }, () => watch())) {
			await each.next();
			waiting.push(
				each.next().then(() => {
					delivered += 1;
				}),
			);
		}
		apply("a");
		const perIteration: number[] = [];
		while (delivered < waiting.length) {
			const before = delivered;
			await new Promise((resolve) => setImmediate(resolve));
			perIteration.push(delivered - before);
		}
		await Promise.all(waiting);
		// One slice before the next iteration begins, and one in it.
		expect(Math.max(...perIteration)).toBeLessThanOrEqual(2 * 32);
	});
});

describe("a watch that waits for its turn", () => {
	let turns: Delivery[];

	beforeEach(() => {
		turns = [];
		const deliveries = { add: (delivery: Delivery) => void turns.push(delivery) };
		store = new StateStore(runtime, defaultStorageLimits, deliveries);
	});

	it("sends nothing at its turn if a bookmark that came due has sent the event, and the next one later", async () => {
		const watching = watch(query, 1000);
		await watching.next();
		const first = watching.next();
		apply("a");
		await clock.advanceAsync(1000);
		expect((await first).value).toMatchObject({ resource: { id: { name: "a" } } });
		expect(turns.map(({ isOver }) => isOver)).toEqual([true]);
		expect((await watching.next()).value).toEqual({ kind: "bookmark", version: "1" });
		const second = watching.next();
		turns.shift()?.deliver();
		apply("b");
		expect(turns).toEqual([watching]);
		turns.shift()?.deliver();
		expect((await second).value).toMatchObject({ resource: { id: { name: "b" } } });
	});

	it("misses nothing that is added between a bookmark and its next call", async () => {
		const watching = watch(query, 1000);
		await watching.next();
		const first = watching.next();
		await clock.advanceAsync(1000);
		expect((await first).value).toEqual({ kind: "bookmark", version: "0" });
		apply("a");
		expect((await watching.next()).value).toMatchObject({ resource: { id: { name: "a" } } });
	});

	it("takes one turn for all that is added before it, and receives each revision as a whole", async () => {
		const watching = watch({ ...query, namePrefix: "a" });
		await watching.next();
		const next = watching.next();
		apply("b", "a1", "b2", "a2");
		apply("a3");
		expect(turns).toEqual([watching]);
		turns.shift()?.deliver();
		const events = [(await next).value, watching.nextReady(), watching.nextReady()];
		expect(events.map((event) => event?.version)).toEqual([undefined, "1", "2"]);
		expect(watching.nextReady()).toBeUndefined();
	});

	it("leaves without a word if it is closed meanwhile", async () => {
		const watching = watch();
		await watching.next();
		const next = watching.next();
		apply("a");
		await watching.return();
		turns.shift()?.deliver();
		expect(await next).toEqual({ done: true, value: undefined });
		apply("b");
		expect(turns).toEqual([]);
	});

	it("fails at its turn if the storage is closed", async () => {
		const watching = watch();
		await watching.next();
		const next = watching.next();
		store.close(new WatchClosed("the storage was closed"));
		turns.shift()?.deliver();
		await expect(next).rejects.toThrow("the storage was closed");
	});
});

describe("the signal of a watch", () => {
	function watchUntil(signal: AbortSignal): AsyncIterator<WatchEvent> {
		return store.watch(query, { signal }, async () => {})[Symbol.asyncIterator]();
	}

	it("has one listener however often it waits, and none when the watch is over", async () => {
		const { signal } = new AbortController();
		const watching = watchUntil(signal);
		await watching.next();
		const counts: number[] = [];
		for (const name of ["a", "b", "c"]) {
			const next = watching.next();
			apply(name);
			await next;
			counts.push(getEventListeners(signal, "abort").length);
		}
		await watching.return?.();
		expect([...counts, getEventListeners(signal, "abort").length]).toEqual([1, 1, 1, 0]);
	});

	it("fails the next call if it aborts while nobody waits, and then the watch is over", async () => {
		const end = new AbortController();
		const watching = watchUntil(end.signal);
		await watching.next();
		const next = watching.next();
		apply("a");
		apply("b");
		await next;
		end.abort(new Error("aborted"));
		await expect(watching.next()).rejects.toThrow("aborted");
		expect(await watching.next()).toEqual({ done: true, value: undefined });
	});
});

describe("watches of one type", () => {
	it("receive the same event object", async () => {
		const watches = [watch(), watch()];
		for (const each of watches) {
			await each.next();
		}
		apply("a", "b");
		const [first, second] = await Promise.all(
			watches.map(async (each) => [(await each.next()).value, (await each.next()).value]),
		);
		expect(first?.[0]).toBe(second?.[0]);
		expect(first?.[1]).toBe(second?.[1]);
	});
});

describe("bookmarks", () => {
	it("are sent at their interval if there is nothing else to send, at the version of the state", async () => {
		const watching = watch({ ...query, namePrefix: "x" }, 1000);
		await watching.next();
		const first = watching.next();
		await clock.advanceAsync(600);
		apply("a");
		await clock.advanceAsync(399);
		apply("b");
		await clock.advanceAsync(1);
		expect((await first).value).toEqual({ kind: "bookmark", version: "2" });
		const second = watching.next();
		await clock.advanceAsync(999);
		expect(clock.nextTimerMs()).toBe(1);
		apply("x");
		expect((await second).value).toMatchObject({ kind: "upsert", version: "3" });
		// The timer is not set again for each event.
		expect(clock.nextTimerMs()).toBe(1);
		await watching.return();
		expect(clock.nextTimerMs()).toBeUndefined();
	});

	it("are sent between events, which the consumer may filter out", async () => {
		const watching = watch(query, 1000);
		await watching.next();
		const kinds: unknown[] = [];
		for (let revision = 1; revision <= 3; revision++) {
			const next = watching.next();
			await clock.advanceAsync(400);
			apply("a");
			kinds.push((await next).value?.kind);
		}
		expect(kinds).toEqual(["upsert", "upsert", "bookmark"]);
		expect((await watching.next()).value).toMatchObject({ kind: "upsert", version: "3" });
	});

	it("are sent again at the same version only after six intervals, and at once at a new one", async () => {
		const watching = watch({ ...query, namePrefix: "x" }, 1000);
		await watching.next();
		const versions: unknown[] = [];
		const read = async () => {
			for await (const { version } of watching) {
				versions.push(version);
			}
		};
		void read().catch(() => {});
		await clock.advanceAsync(6999);
		expect(versions).toEqual(["0"]);
		await clock.advanceAsync(1);
		expect(versions).toEqual(["0", "0"]);
		apply("a");
		await clock.advanceAsync(1000);
		expect(versions).toEqual(["0", "0", "1"]);
		await clock.advanceAsync(5999);
		expect(versions).toEqual(["0", "0", "1"]);
		await clock.advanceAsync(1);
		expect(versions).toEqual(["0", "0", "1", "1"]);
		await watching.return();
		expect(clock.nextTimerMs()).toBeUndefined();
	});

	it("are sent at once if they are overdue and there is nothing else to send", async () => {
		const watching = watch(query, 1000);
		await watching.next();
		apply("a");
		clock.advance(5000);
		expect((await watching.next()).value).toMatchObject({ kind: "upsert", version: "1" });
		expect((await watching.next()).value).toEqual({ kind: "bookmark", version: "1" });
		const next = watching.next();
		expect(clock.nextTimerMs()).toBe(1000);
		apply("b");
		expect((await next).value).toMatchObject({ kind: "upsert", version: "2" });
	});

	it("begin at once on a watch that has resumed, if that is requested, and after the events that it has missed", async () => {
		apply("a");
		apply("x");
		apply("b");
		const resume = (namePrefix: string, afterVersion?: string, bookmarkOnResume = true) =>
			store
				.watch(
					{ ...query, namePrefix },
					{ signal: never, afterVersion, bookmarkIntervalMs: 1000, bookmarkOnResume },
					async () => {},
				)
				[Symbol.asyncIterator]();
		const bookmark = { kind: "bookmark", version: "3" };
		const [missed, idle] = [resume("x", "1"), resume("x", "3")];
		expect((await missed.next()).value).toMatchObject({ kind: "upsert", version: "2" });
		expect((await missed.next()).value).toEqual(bookmark);
		expect((await idle.next()).value).toEqual(bookmark);
		expect(clock.nextTimerMs()).toBeUndefined();
		const next = idle.next();
		expect(clock.nextTimerMs()).toBe(1000);
		apply("x");
		expect((await next).value).toMatchObject({ kind: "upsert", version: "4" });
		const others = [resume("x", "4", false), resume("y")];
		expect((await others[1]?.next())?.value).toMatchObject({ kind: "end-of-snapshot" });
		const later = others.map((each) => each.next());
		await clock.advanceAsync(999);
		await clock.advanceAsync(1);
		const values = (await Promise.all(later)).map(({ value }) => value);
		expect(values).toEqual(Array(2).fill({ kind: "bookmark", version: "4" }));
	});

	it("are preceded by an event that was not delivered yet", async () => {
		const watching = watch(query, 1000);
		await watching.next();
		const next = watching.next();
		clock.advance(999);
		apply("a");
		clock.advance(1);
		expect((await next).value).toMatchObject({ kind: "upsert", version: "1" });
	});
});

describe("events that are available without waiting", () => {
	it("are returned at once, and none after the watch has ended", async () => {
		const watching = watch();
		expect(watching.nextReady()).toBeUndefined();
		await watching.next();
		expect(watching.nextReady()).toBeUndefined();
		apply("a", "b");
		apply("c");
		const ready = [watching.nextReady(), watching.nextReady(), watching.nextReady()];
		expect(ready.map((event) => event?.version)).toEqual([undefined, "1", "2"]);
		expect(watching.nextReady()).toBeUndefined();
		const waiting = watching.next();
		apply("d");
		expect(watching.nextReady()).toBeUndefined();
		expect((await waiting).value).toMatchObject({ version: "3" });
		apply("e");
		await watching.return();
		expect(watching.nextReady()).toBeUndefined();
	});

	it("end with the reason of the signal", async () => {
		const end = new AbortController();
		const watching = watch(query, undefined, end.signal);
		await watching.next();
		apply("a");
		end.abort(new Error("enough"));
		expect(() => watching.nextReady()).toThrow("enough");
		expect((await watching.next()).done).toBe(true);
	});
});
