import { setImmediate } from "node:timers/promises";
import { create, fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import {
	ResourceSchema,
	ResourceService,
	type WatchSetEvent,
	WatchSetEventSchema,
	type WatchSetRequest,
} from "@plinth/proto";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { TypeService } from "@plinth/proto/gen/plinth/type/v1/type_service_pb.js";
import { FakeClock } from "@plinth/runtime/testing";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { namespaceOf, namespaceType, typesResponse } from "../../table/row.fixture.ts";
import { defaultOrder } from "../../table/row-order.ts";
import type { LiveState } from "../live-state.ts";
import type { SentRow, ToTab, ToWorker, ViewRequest } from "../view.ts";
import { Hub } from "./hub.ts";

const table: ViewRequest = {
	kind: "table",
	typeKey: namespaceType.key,
	...{ tenancy: { partition: "*", namespace: "*" }, namePrefix: "" },
	...{ order: defaultOrder, filter: "", start: 0, count: 50 },
};

/** A stream that the hub has opened, and the test writes. */
class OpenStream {
	readonly request: WatchSetRequest;
	readonly token: string;
	isOpen = true;
	readonly #messages: (WatchSetEvent | ConnectError)[] = [];
	#wake = () => {};

	constructor(request: WatchSetRequest, token: string, signal: AbortSignal) {
		this.request = request;
		this.token = token;
		signal.addEventListener("abort", () => {
			this.isOpen = false;
			this.fail(new ConnectError("aborted", Code.Canceled));
		});
	}

	/** How many messages have not been taken. */
	get unread(): number {
		return this.#messages.length;
	}

	get positions(): readonly string[] {
		return this.request.watches.map(({ request }) => request?.afterVersion ?? "");
	}

	/** A resource, for the watch at a position of the request. */
	upsert(name: string, version: string, at = 0, isLast = true): void {
		const value = { resource: namespaceOf(name, "", version) };
		this.#event(at, { event: { case: "upsert", value }, version: isLast ? version : "" });
	}

	remove(name: string, version: string, at = 0): void {
		const value = { resource: namespaceOf(name, "", version) };
		this.#event(at, { event: { case: "delete", value }, version });
	}

	complete(version: string, at = 0): void {
		this.#event(at, { event: { case: "endOfSnapshot", value: {} }, version });
	}

	end(code: Code, message: string, at = 0): void {
		const watchId = this.request.watches[at]?.id ?? "";
		this.#send(
			create(WatchSetEventSchema, { watchId, content: { case: "end", value: { code, message } } }),
		);
	}

	fail(error: ConnectError): void {
		this.#send(error);
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<WatchSetEvent> {
		for (;;) {
			const next = this.#messages.shift();
			if (next instanceof ConnectError) {
				throw next;
			}
			if (next === undefined) {
				await new Promise<void>((resolve) => {
					this.#wake = resolve;
				});
			} else {
				yield next;
			}
		}
	}

	#event(at: number, value: object): void {
		const watchId = this.request.watches[at]?.id ?? "";
		this.#send(
			create(WatchSetEventSchema, { watchId, content: { case: "event", value } as never }),
		);
	}

	#send(message: WatchSetEvent | ConnectError): void {
		this.#messages.push(message);
		this.#wake();
	}
}

/** A tab, and what it has been sent. */
class TestTab {
	readonly messages: ToTab[] = [];
	readonly states = new Map<number, LiveState>();
	/** All rows that were sent. */
	readonly sent: SentRow[] = [];
	/** The rows of the last window: others are sent again. */
	rows = new Map<number, SentRow>();
	/** The names in the window of each table. */
	readonly tables = new Map<number, { names: readonly string[]; total: number }>();
	/** The version of each resource; `undefined` if it is gone. */
	readonly resources = new Map<number, string | undefined>();
	/** Whether it shows frames. */
	shows = true;
	#listener: (message: ToWorker) => void = () => {};

	constructor(hub: Hub, token = "") {
		const forget = hub.add({
			post: (message) => this.#receive(message),
			listen: (listener) => {
				this.#listener = listener;
			},
		});
		onTestFinished(forget);
		this.send({ kind: "hello", serverUrl: "http://test", token });
	}

	send(message: ToWorker): void {
		this.#listener(message);
	}

	names(view = 1): readonly string[] | undefined {
		return this.tables.get(view)?.names;
	}

	#receive(message: ToTab): void {
		this.messages.push(structuredClone(message));
		if (message.kind !== "frame") {
			return;
		}
		for (const { view, state, content } of message.updates) {
			if (state !== undefined) {
				this.states.set(view, state);
			}
			if (content?.kind === "table") {
				this.sent.push(...content.rows);
				expect(content.rows.filter(({ id }) => this.rows.has(id))).toEqual([]);
				const known = new Map([...this.rows.values(), ...content.rows].map((row) => [row.id, row]));
				const rows = content.ids.map((id) => known.get(id));
				const names = rows.map((row) => row?.name ?? "a row that was not sent");
				this.rows = new Map(rows.flatMap((row) => (row ? [[row.id, row]] : [])));
				this.tables.set(view, { names, total: content.total });
			} else if (content?.kind === "resource") {
				const { bytes, isPresent } = content;
				const version = bytes && fromBinary(ResourceSchema, bytes).version;
				this.resources.set(view, isPresent ? version : undefined);
			}
		}
		if (this.shows) {
			queueMicrotask(() => this.send({ kind: "ready" }));
		}
	}
}

describe("the hub", () => {
	let streams: OpenStream[];
	let clock: FakeClock;
	let hub: Hub;
	let overviews: number;
	let failOverview: (error: ConnectError) => void;

	beforeEach(() => {
		streams = [];
		overviews = 0;
		clock = new FakeClock();
		hub = new Hub({
			clock,
			random: { next: () => 1 },
			connect: (_serverUrl, token) =>
				createRouterTransport((router) => {
					router.service(TypeService, { listTypes: () => typesResponse });
					router.service(ServerService, {
						watchOverview: async function* (_request, { signal }) {
							overviews += 1;
							yield { overview: { storage: { commitsPerSecond: overviews } } };
							await new Promise((resolve, reject) => {
								failOverview = reject;
								signal.addEventListener("abort", resolve);
							});
						},
					});
					router.service(ResourceService, {
						watchSet: (request, { signal }) => {
							const stream = new OpenStream(request, token, signal);
							streams.push(stream);
							return stream;
						},
					});
				}),
		});
	});

	/** Lets everything happen that does not wait for time to pass. */
	async function settle(): Promise<void> {
		for (let turn = 0; turn < 20; turn += 1) {
			await setImmediate();
			clock.advance(0);
		}
	}

	const last = () => streams.at(-1) as OpenStream;

	it("sends the rows of a table in frames: those before the end of the snapshot, and each change once", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().upsert("b", "1", 0, false);
		await settle();
		expect(tab.names()).toBe(undefined);
		clock.advance(40);
		await settle();
		expect([tab.names(), tab.states.get(1)?.phase]).toEqual([["b"], "loading"]);
		last().upsert("a", "2", 0, false);
		last().complete("2");
		await settle();
		expect([tab.names(), tab.states.get(1)?.phase]).toEqual([["a", "b"], "live"]);
		last().upsert("c", "3");
		last().remove("a", "4");
		await settle();
		expect(tab.names()).toEqual(["b", "c"]);
	});

	it("sends a screen full of rows at once, and reads on when they are shown, or after a second", async () => {
		const tab = new TestTab(hub);
		tab.shows = false;
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		for (let at = 0; at < 100; at += 1) {
			last().upsert(`n${at}`, "1", 0, false);
		}
		await settle();
		expect([tab.tables.get(1)?.total, tab.states.get(1)?.phase]).toEqual([60, "loading"]);
		expect(last().unread).toBeGreaterThan(30);
		tab.send({ kind: "ready" });
		await settle();
		expect([last().unread, tab.tables.get(1)?.total]).toEqual([0, 100]);
		const other = new TestTab(hub);
		other.shows = false;
		other.send({ kind: "open", view: 1, request: table });
		await settle();
		for (let at = 0; at < 100; at += 1) {
			last().upsert(`n${at}`, "1", 1, false);
		}
		await settle();
		expect(last().unread).toBeGreaterThan(30);
		clock.advance(1_000);
		await settle();
		expect(last().unread).toBe(0);
	});

	it("sends no frame before the last one was shown", async () => {
		const tab = new TestTab(hub);
		tab.shows = false;
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().complete("1");
		for (let version = 2; version < 50; version += 1) {
			last().upsert(`n${version}`, String(version));
			await settle();
		}
		expect(tab.messages.length).toBe(1);
		tab.send({ kind: "ready" });
		await settle();
		expect(tab.messages.length).toBe(2);
		expect(tab.tables.get(1)?.total).toBe(48);
	});

	it("sends the rows of the window alone, and those of another one when it is asked for", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: { ...table, count: 2 } });
		await settle();
		for (const name of ["a", "b", "c", "d"]) {
			last().upsert(name, "1", 0, false);
		}
		last().complete("1");
		await settle();
		expect([tab.names(), tab.rows.size]).toEqual([["a", "b"], 2]);
		const shape = { ...table, count: 2, filter: "" };
		tab.send({ kind: "reshape", view: 1, shape: { ...shape, start: 1 } });
		await settle();
		expect(tab.names()).toEqual(["b", "c"]);
		const descending = { by: "name", isDescending: true } as const;
		tab.send({ kind: "reshape", view: 1, shape: { ...shape, start: 0, order: descending } });
		await settle();
		expect(tab.names()).toEqual(["d", "c"]);
		tab.send({ kind: "reshape", view: 1, shape: { ...shape, start: 0, filter: "b" } });
		await settle();
		expect(tab.names()).toEqual(["b"]);
	});

	it("has one stream for all tabs with a token, and another for another token", async () => {
		const tabs = [new TestTab(hub, "x"), new TestTab(hub, "x"), new TestTab(hub, "y")];
		for (const tab of tabs) {
			tab.send({ kind: "open", view: 1, request: table });
		}
		await settle();
		const open = streams.filter(({ isOpen }) => isOpen);
		expect(open.map(({ token, positions }) => [token, positions.length])).toEqual([
			["x", 2],
			["y", 1],
		]);
		open[0]?.upsert("a", "1", 1);
		await settle();
		clock.advance(40);
		await settle();
		expect(tabs.map((tab) => tab.names())).toEqual([undefined, ["a"], undefined]);
	});

	it("shares one overview, and ends it when nobody looks", async () => {
		const tabs = [new TestTab(hub), new TestTab(hub)];
		for (const tab of tabs) {
			tab.send({ kind: "open", view: 1, request: { kind: "overview" } });
		}
		await settle();
		expect(overviews).toBe(1);
		expect(tabs.map((tab) => tab.states.get(1)?.phase)).toEqual(["live", "live"]);
		for (const tab of tabs) {
			tab.send({ kind: "close", view: 1 });
		}
		clock.advance(1_000);
		tabs[0]?.send({ kind: "open", view: 2, request: { kind: "overview" } });
		await settle();
		expect(overviews).toBe(2);
	});

	it("streams nothing for a hidden tab, and resumes when it is shown", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().upsert("a", "1", 0, false);
		last().complete("1");
		await settle();
		tab.send({ kind: "visible", isVisible: false });
		await settle();
		expect([last().isOpen, tab.states.get(1)?.phase]).toEqual([false, "paused"]);
		tab.send({ kind: "visible", isVisible: true });
		await settle();
		expect(last().positions).toEqual(["1"]);
		last().upsert("b", "2");
		await settle();
		expect([tab.names(), tab.states.get(1)?.phase]).toEqual([["a", "b"], "live"]);
	});

	it("takes a tab that says nothing for hidden, and forgets it later", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		clock.advance(60_000);
		await settle();
		expect(last().isOpen).toBe(false);
		tab.send({ kind: "visible", isVisible: true });
		await settle();
		expect(last().isOpen).toBe(true);
		clock.advance(60_000);
		clock.advance(15 * 60_000);
		tab.send({ kind: "visible", isVisible: true });
		expect(tab.messages.at(-1)).toEqual({ kind: "unknown" });
	});

	it("says since when a view is old, resumes it, and drops what has gone if it has to begin again", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().upsert("a", "1", 0, false);
		last().upsert("b", "1", 0, false);
		last().complete("1");
		await settle();
		const sinceMs = clock.now();
		last().fail(new ConnectError("the server is stopping", Code.Unavailable));
		await settle();
		expect(tab.states.get(1)).toEqual({
			phase: "lost",
			sinceMs,
			reason: "the server is stopping",
		});
		expect(tab.names()).toEqual(["a", "b"]);
		clock.advance(500);
		await settle();
		expect(last().positions).toEqual(["1"]);
		last().end(Code.OutOfRange, "too old");
		await settle();
		expect(tab.states.get(1)).toEqual({ phase: "lost", sinceMs, reason: "too old" });
		clock.advance(500);
		await settle();
		expect(last().positions).toEqual([""]);
		last().upsert("b", "1", 0, false);
		last().upsert("c", "2", 0, false);
		last().complete("2");
		await settle();
		expect([tab.names(), tab.states.get(1)?.phase]).toEqual([["b", "c"], "live"]);
		const changed = tab.sent.map(({ name, changedMs }) => [name, changedMs]);
		expect(changed).toEqual([
			["a", undefined],
			["b", undefined],
			["c", clock.now()],
		]);
	});

	it("does not call a view live that the server has interrupted, until it sends something again", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().complete("1");
		await settle();
		expect(tab.states.get(1)?.phase).toBe("live");
		const sinceMs = clock.now();
		last().end(Code.ResourceExhausted, "too many watches");
		await settle();
		const lost = { phase: "lost", sinceMs, reason: "too many watches" };
		expect(tab.states.get(1)).toEqual(lost);
		clock.advance(500);
		await settle();
		expect(last().positions).toEqual(["1"]);
		expect(tab.states.get(1)).toEqual(lost);
		last().upsert("a", "2");
		await settle();
		expect([tab.names(), tab.states.get(1)?.phase]).toEqual([["a"], "live"]);
	});

	it("says since when a view is old that is interrupted again and again, also if all attempts begin with a snapshot", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		last().complete("1");
		await settle();
		const sinceMs = clock.now();
		const seen: unknown[] = [];
		for (const code of [Code.OutOfRange, Code.ResourceExhausted, Code.ResourceExhausted]) {
			last().end(code, "not now");
			await settle();
			seen.push(tab.states.get(1));
			last().fail(new ConnectError("no watch is left", Code.Unavailable));
			await settle();
			seen.push(tab.states.get(1));
			clock.advance(5_000);
			await settle();
			expect(last().positions).toEqual([""]);
			seen.push(tab.states.get(1));
		}
		expect(seen).toEqual(Array(9).fill({ phase: "lost", sinceMs, reason: "not now" }));
		last().complete("2");
		await settle();
		expect(tab.states.get(1)?.phase).toBe("live");
	});

	it("says since when a view is old that was interrupted before its tab was hidden, while another view is current", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		const other = new TestTab(hub);
		other.send({ kind: "open", view: 1, request: table });
		await settle();
		last().complete("1", 0);
		last().complete("1", 1);
		await settle();
		const sinceMs = clock.now();
		last().end(Code.ResourceExhausted, "too many watches");
		await settle();
		const lost = { phase: "lost", sinceMs, reason: "too many watches" };
		expect(tab.states.get(1)).toEqual(lost);
		clock.advance(400);
		last().upsert("a", "2", 1);
		await settle();
		tab.send({ kind: "visible", isVisible: false });
		await settle();
		expect(tab.states.get(1)).toEqual({ phase: "paused", sinceMs });
		clock.advance(10_000);
		last().upsert("b", "3");
		await settle();
		tab.send({ kind: "visible", isVisible: true });
		await settle();
		expect(tab.states.get(1)).toEqual(lost);
		const at = last().positions.indexOf("1");
		last().end(Code.ResourceExhausted, "still too many watches", at);
		await settle();
		expect(tab.states.get(1)).toEqual({ ...lost, reason: "still too many watches" });
		const phases = tab.messages.flatMap((message) =>
			message.kind === "frame" ? message.updates.map(({ state }) => state?.phase) : [],
		);
		expect(phases.filter((phase) => phase === "live")).toHaveLength(1);
		expect(other.states.get(1)?.phase).toBe("live");
	});

	it("tries again at once when a tab says so, whatever waits", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		tab.send({ kind: "open", view: 2, request: { kind: "overview" } });
		await settle();
		last().complete("1");
		for (let loss = 0; loss < 4; loss += 1) {
			last().fail(new ConnectError("the network is gone", Code.Unavailable));
			failOverview(new ConnectError("the network is gone", Code.Unavailable));
			await settle();
			expect(tab.states.get(1)?.phase).toBe("lost");
			expect(tab.states.get(2)?.phase).toBe("lost");
			tab.send({ kind: "retry" });
			await settle();
			expect([last().positions, last().isOpen]).toEqual([["1"], true]);
			expect([overviews, tab.states.get(2)?.phase]).toEqual([loss + 2, "live"]);
		}
	});

	it("follows one resource among those whose names begin like its own", async () => {
		const tab = new TestTab(hub);
		const { type } = namespaceType;
		const tenancy = { partition: "default", namespace: "" };
		tab.send({ kind: "open", view: 1, request: { kind: "resource", type, tenancy, name: "a" } });
		await settle();
		last().upsert("a", "1", 0, false);
		last().upsert("ab", "2", 0, false);
		last().complete("2");
		await settle();
		expect(tab.resources.get(1)).toBe("1");
		last().remove("ab", "3");
		last().upsert("a", "4");
		await settle();
		expect(tab.resources.get(1)).toBe("4");
		last().remove("a", "5");
		await settle();
		expect([...tab.resources]).toEqual([[1, undefined]]);
	});

	it("refuses what the server refuses, and says so of the token if that is why", async () => {
		const tab = new TestTab(hub, "old");
		tab.send({ kind: "open", view: 1, request: table });
		tab.send({ kind: "open", view: 2, request: { ...table, typeKey: "demo.v1.Unknown" } });
		await settle();
		last().end(Code.PermissionDenied, "ann may not list namespaces");
		await settle();
		expect(tab.states.get(1)).toMatchObject({ reason: "ann may not list namespaces" });
		expect(tab.states.get(2)).toMatchObject({
			reason: "the server has no type demo.v1.Unknown, or you may not use it",
		});
		expect(tab.messages.some(({ kind }) => kind === "refused")).toBe(false);
		tab.send({ kind: "open", view: 3, request: table });
		await settle();
		last().fail(new ConnectError("the token has expired", Code.Unauthenticated));
		await settle();
		expect(tab.messages).toContainEqual({ kind: "refused", token: "old" });
		tab.send({ kind: "hello", serverUrl: "http://test", token: "new" });
		await settle();
		expect([last().token, last().positions]).toEqual(["new", ["", ""]]);
	});

	it("ends the streams of a tab that leaves", async () => {
		const tab = new TestTab(hub);
		tab.send({ kind: "open", view: 1, request: table });
		await settle();
		tab.send({ kind: "bye" });
		await settle();
		expect(last().isOpen).toBe(false);
	});
});
