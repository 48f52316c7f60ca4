import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { defineController, requeueAfter, sameNameAs, watch } from "@plinth/controller";
import { idOf, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { QuoteSchema } from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { Item, marketTypes, Quote } from "../market-types.fixture.ts";
import { startTestServer } from "./start-test-server.ts";

/** Quotes each item at its price. */
const quotes = defineController({
	name: "quotes",
	manages: Item,
	watches: [watch(Quote, { map: sameNameAs(Item) })],
	async reconcile(ctx, { id }) {
		const item = ctx.cache.get(Item, id);
		if (item !== undefined) {
			const data = create(QuoteSchema, { price: item.data.price });
			await ctx.writeIfChanged(Quote, { id: idOf(Quote, id.name), data });
		}
	},
});

const allItems = {
	type: Item.type,
	tenancy: { partition: "*", namespace: "*" },
	namePrefix: "",
};

const unavailable = () => new ConnectError("out of reach", Code.Unavailable);

describe("a test server", () => {
	it("runs controllers only while the test awaits something", async () => {
		await using server = await startTestServer({ types: marketTypes, controllers: [quotes] });
		await server.write(Item, "pen", { price: 3 });
		await server.quiesce();
		expect((await server.read(Quote, "pen"))?.data.price).toBe(3);

		const write = server.backgroundClient.write({
			resource: resourceOf(Item, { id: idOf(Item, "ink") }),
		});
		expect(await server.backend.list(allItems)).toMatchObject({ resources: [{}] });
		await server.settle();
		expect((await write).resource?.id?.name).toBe("ink");
		expect(await server.backend.list(allItems)).toMatchObject({ resources: [{}, {}] });
	});

	it("behaves identically with the same seed", async () => {
		const run = async (seed: number) => {
			await using server = await startTestServer({
				types: marketTypes,
				controllers: [quotes],
				seed,
				storageDelays: 0.5,
			});
			const names = ["pen", "ink", "cup", "hat"];
			const writes = names.map((name, price) => server.write(Item, name, { price }));
			await Promise.all(writes);
			await server.quiesce();
			return (await server.list(Quote)).map(({ resource }) => [resource.id, resource.version]);
		};
		const first = await run(1);
		expect(first).toHaveLength(4);
		expect(await run(1)).toEqual(first);
		expect(await run(2)).not.toEqual(first);
	});

	it("returns current resources, of one tenancy or of all", async () => {
		await using server = await startTestServer({ types: marketTypes });
		expect(await server.read(Item, "pen")).toBeUndefined();
		const { resource } = await server.write(Item, "pen", { price: 1 }, { metadata: { a: "b" } });
		await server.write(Item, "pen", { price: 2 }, { version: resource.version });
		const elsewhere = { namespace: "elsewhere" };
		expect(await server.list(Item, elsewhere)).toEqual([]);
		expect((await server.list(Item)).map(({ data }) => data.price)).toEqual([2]);
		await server.delete(Item, "pen");
		await server.delete(Item, "pen");
		expect(await server.list(Item)).toEqual([]);
	});

	it("delivers the events of a watch as they happen", async () => {
		await using server = await startTestServer({ types: marketTypes });
		const stop = new AbortController();
		const seen: (string | undefined)[] = [];
		const watching = (async () => {
			for await (const { event } of server.client.watchList(
				{ type: { ...Item.type } },
				{ signal: stop.signal },
			)) {
				seen.push(event.case);
			}
		})();
		await server.settle();
		await server.write(Item, "pen", { price: 1 });
		await server.delete(Item, "pen");
		await server.settle();
		expect(seen).toEqual(["endOfSnapshot", "upsert", "delete"]);
		stop.abort();
		await expect(server.runtime.scheduler.run(watching)).rejects.toThrow();
	});

	it("is at rest only after failed work has been retried", async () => {
		await using server = await startTestServer({ types: marketTypes, controllers: [quotes] });
		server.faults.failCalls("request", unavailable(), { method: "write", type: Quote, times: 5 });
		await server.write(Item, "pen", { price: 3 });
		await server.quiesce();
		expect((await server.read(Quote, "pen"))?.data.price).toBe(3);
		expect(server.clock.monotonic()).toBeGreaterThan(5 + 10 + 20 + 40);
		expect(
			server.log.messages("warn").filter((line) => line.includes("out of reach")),
		).toHaveLength(5);
	});

	it("names controllers that are not at rest, unless they always requeue", async () => {
		const ticker = defineController({
			name: "ticker",
			manages: Item,
			reconcile: async () => requeueAfter(1_000),
		});
		await using server = await startTestServer({ types: marketTypes, controllers: [ticker] });
		await server.write(Item, "pen", { price: 3 });
		await expect(server.quiesce({ limitMs: 10_000 })).rejects.toThrow(
			"seed 1: 10000 ms have passed, and the condition still does not hold: " +
				"ticker has in its queue of ticker: 1 delayed; " +
				'if it always requeues, call quiesce({ alwaysRequeueing: ["ticker"] })',
		);
		await server.quiesce({ alwaysRequeueing: ["ticker"] });
	});

	it("reports which controller is not running, and why", async () => {
		const failing = defineController({
			name: "failing",
			manages: Item,
			initialize: () => {
				throw new Error("no key");
			},
			reconcile: async () => {},
		});
		await using server = await startTestServer({ types: marketTypes, controllers: [failing] });
		await expect(server.quiesce({ limitMs: 60_000 })).rejects.toThrow(
			/failing is [a-z-]+, last error: no key/,
		);
	});

	it("restarts its controllers, which start from the stored resources", async () => {
		await using server = await startTestServer({ types: marketTypes, controllers: [quotes] });
		await server.write(Item, "pen", { price: 3 });
		await server.stopControllers();
		expect(server.state).toBeUndefined();
		await server.write(Item, "pen", { price: 4 });
		await server.settle();
		expect((await server.read(Quote, "pen"))?.data.price).not.toBe(4);
		server.startControllers();
		expect(() => server.startControllers()).toThrow("already running");
		await server.quiesce();
		expect((await server.read(Quote, "pen"))?.data.price).toBe(4);
	});

	it("waits until the servers of a cluster have divided the shards, and shares the work", async () => {
		const seen: string[] = [];
		const sharded = (server: string) =>
			defineController({
				name: "sharded",
				manages: Item,
				placement: "sharded",
				reconcile: async (_, { id }) => void seen.push(`${id.name} on ${server}`),
			});
		await using first = await startTestServer({
			types: marketTypes,
			controllers: [sharded("first")],
		});
		await using _second = await startTestServer({
			types: marketTypes,
			controllers: [sharded("second")],
			joins: first,
		});
		await first.quiesce();
		const names = Array.from({ length: 20 }, (_, at) => `item-${at}`);
		for (const name of names) {
			await first.write(Item, name, { price: 1 });
		}
		await first.quiesce();
		expect(seen.map((each) => each.split(" ")[0]).toSorted()).toEqual(names.toSorted());
		expect(new Set(seen.map((each) => each.split(" ").at(-1)))).toEqual(
			new Set(["first", "second"]),
		);
	});

	it("shares storage and lease with the server that it joins", async () => {
		await using first = await startTestServer({ types: marketTypes, controllers: [quotes] });
		await using second = await startTestServer({
			types: marketTypes,
			controllers: [quotes],
			joins: first,
		});
		expect([first.state?.holdsLease, second.state?.holdsLease]).toEqual([true, false]);
		first.leases.revoke("controllers");
		await second.write(Item, "pen", { price: 5 });
		await first.quiesce();
		expect([first.state?.holdsLease, second.state?.holdsLease]).toEqual([false, true]);
		expect((await first.read(Quote, "pen"))?.data.price).toBe(5);
	});
});
