import { Code, ConnectError } from "@connectrpc/connect";
import type { ResourceClient } from "@plinth/controller";
import { idOf, resourceOf } from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Item, marketTypes, Shop } from "../market-types.fixture.ts";
import { startTestServer } from "../server/start-test-server.ts";
import type { TestServer } from "../server/test-server.ts";
import { ClientFaults } from "./client-faults.ts";
import { faultyClient } from "./faulty-client.ts";

const unavailable = new ConnectError("out of reach", Code.Unavailable);
const compacted = new ConnectError("compacted", Code.OutOfRange);

describe("a faulty client", () => {
	let server: TestServer;
	let faults: ClientFaults;
	let client: ResourceClient;
	const stop = new AbortController();

	beforeEach(async () => {
		server = await startTestServer({ types: marketTypes });
		faults = new ClientFaults();
		client = faultyClient(server.backgroundClient, faults);
	});
	afterEach(() => server[Symbol.asyncDispose]());

	const item = (name: string) => ({ resource: resourceOf(Item, { id: idOf(Item, name) }) });
	const run = <T>(call: Promise<T>) => server.runtime.scheduler.run(call);
	const names = async () => (await server.list(Item)).map(({ resource }) => resource.id?.name);

	/** The outcome of a promise in one word, once nothing can proceed by itself. */
	async function outcome(promise: Promise<unknown>): Promise<string> {
		let state = "pending";
		promise.then(
			() => {
				state = "resolved";
			},
			(error: unknown) => {
				state = error instanceof ConnectError ? error.rawMessage : String(error);
			},
		);
		await server.settle();
		return state;
	}

	/** Watches items; returns the events received so far, and the end of the watch. */
	function watchItems(afterVersion = "") {
		const seen: string[] = [];
		const ended = (async () => {
			const request = { type: { ...Item.type }, afterVersion };
			for await (const { event } of client.watchList(request, { signal: stop.signal })) {
				const name = event.case === "upsert" ? ` ${event.value.resource?.id?.name}` : "";
				seen.push(`${event.case}${name}`);
			}
		})();
		ended.catch(() => {});
		return { seen, ended };
	}

	it("behaves like its client without faults", async () => {
		const { seen } = watchItems();
		await server.settle();
		await run(client.write(item("pen")));
		await server.settle();
		expect(seen).toEqual(["endOfSnapshot", "upsert pen"]);
		await run(client.delete({ id: idOf(Item, "pen") }));
		expect(await outcome(client.read({ id: idOf(Item, "pen") }))).toBe("resource not found");
	});

	it("stalls calls before they reach the server, of a method and a type or of all", async () => {
		const stall = faults.stallCalls("request", { method: "write", type: Item });
		const write = client.write(item("pen"));
		expect(await outcome(write)).toBe("pending");
		expect(stall.waiting).toBe(1);
		expect(
			await outcome(client.write({ resource: resourceOf(Shop, { id: idOf(Shop, "a") }) })),
		).toBe("resolved");
		expect(await names()).toEqual([]);
		stall.release();
		await run(write);
		expect(await names()).toEqual(["pen"]);
		expect(stall.waiting).toBe(0);
		expect(await outcome(client.write(item("ink")))).toBe("resolved");
	});

	it("stalls responses of executed calls", async () => {
		const stall = faults.stallCalls("response");
		const write = client.write(item("pen"));
		expect(await outcome(write)).toBe("pending");
		expect(await names()).toEqual(["pen"]);
		stall.release();
		expect(await outcome(write)).toBe("resolved");
	});

	it("fails calls before or after they are executed, as often as requested", async () => {
		faults.failCalls("request", unavailable, { method: "write", times: 2 });
		faults.failCalls("response", compacted, { method: "write" });
		expect(await outcome(client.write(item("pen")))).toBe("out of reach");
		expect(await outcome(client.write(item("pen")))).toBe("out of reach");
		expect(await names()).toEqual([]);
		expect(await outcome(client.write(item("pen")))).toBe("compacted");
		expect(await names()).toEqual(["pen"]);
		expect(await outcome(client.write(item("pen")))).toBe("resolved");
	});

	it("stalls watches, and delivers no event out of order or twice", async () => {
		const opening = faults.stallWatches("open", { type: Item });
		const { seen } = watchItems();
		await server.settle();
		expect(seen).toEqual([]);
		opening.release();
		await server.settle();
		expect(seen).toEqual(["endOfSnapshot"]);
		const stall = faults.stallWatches("event");
		await run(client.write(item("pen")));
		await run(client.write(item("ink")));
		await server.settle();
		expect(seen).toEqual(["endOfSnapshot"]);
		stall.release();
		await server.settle();
		expect(seen).toEqual(["endOfSnapshot", "upsert pen", "upsert ink"]);
	});

	it("breaks open watches, including waiting and stalled ones, and no later ones", async () => {
		const waiting = watchItems();
		await server.settle();
		faults.stallWatches("open");
		const stalled = watchItems();
		await server.settle();
		faults.breakWatches(unavailable, { type: Item });
		expect(await outcome(waiting.ended)).toBe("out of reach");
		expect(await outcome(stalled.ended)).toBe("out of reach");
		faults.clear();
		const later = watchItems();
		expect(await outcome(later.ended)).toBe("pending");
		expect(later.seen).toEqual(["endOfSnapshot"]);
	});

	it("refuses resumption, but no watch that starts with a snapshot", async () => {
		faults.refuseResumption(compacted, { type: Item });
		expect(await outcome(watchItems().ended)).toBe("pending");
		expect(await outcome(watchItems("1").ended)).toBe("compacted");
		expect(await outcome(watchItems("1").ended)).toBe("pending");
	});

	it("swaps two events", async () => {
		const { seen } = watchItems();
		await server.settle();
		faults.swapEvents();
		for (const name of ["pen", "ink", "cup"]) {
			await run(client.write(item(name)));
		}
		await server.settle();
		expect(seen.slice(1)).toEqual(["upsert ink", "upsert pen", "upsert cup"]);
	});

	it("clears all faults", async () => {
		faults.failCalls("request", unavailable, { times: 100 });
		faults.refuseResumption(unavailable, { times: 100 });
		faults.stallCalls("request");
		const write = client.write(item("pen"));
		await server.settle();
		faults.clear();
		expect(await outcome(write)).toBe("resolved");
		expect(await outcome(watchItems("1").ended)).toBe("pending");
	});

	it("ends a stalled watch when its signal aborts", async () => {
		const ending = new AbortController();
		faults.stallWatches("event");
		const events = client.watchList({ type: { ...Item.type } }, { signal: ending.signal });
		const ended = events[Symbol.asyncIterator]().next();
		await server.settle();
		ending.abort(new Error("enough"));
		expect(await outcome(ended)).toContain("enough");
	});
});
