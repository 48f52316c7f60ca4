import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService, ResourceSchema } from "@plinth/proto";
import {
	Phase,
	Placement,
	ReconcileState,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { createControllerService } from "./controller-service.ts";
import type { ControllerManager } from "./manager.ts";

function clientOf(manager: ControllerManager) {
	const transport = createInProcessTransport((router) => {
		router.service(
			ControllerService,
			createControllerService(manager, {
				read: async (id) => create(ResourceSchema, id && { id }),
			}),
		);
	});
	return createClient(ControllerService, transport);
}

describe("the controller service", () => {
	it("reports phases, queues, caches, counts and errors of each controller", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles"));
		const working = defineController({
			name: "working",
			manages: Artist,
			watches: [watch(Album, { map: mapOwner })],
			async reconcile(_, { id }) {
				if (id.name === "bad") {
					throw new Error("can't do that");
				}
			},
		});
		const broken = defineController({
			name: "broken",
			manages: Album,
			placement: "each-server",
			initialize() {
				throw new Error("never works");
			},
			async reconcile() {},
		});
		const client = clientOf(await bench.start([working, broken]));
		bench.service.put(demo(Artist, "bad"));
		await bench.settle();

		const { controllers, holdsLease } = await client.listControllers({});
		expect(holdsLease).toBeUndefined();
		expect(controllers.map(({ name }) => name)).toEqual(["working", "broken"]);
		expect(controllers[0]).toMatchObject({
			manages: Artist.key,
			watches: [Album.key],
			placement: Placement.SINGLETON,
			phase: Phase.RUNNING,
			requests: { delayed: 1, oldestKey: "" },
			reconciles: { succeeded: 1n, failed: 1n },
		});
		expect(controllers[0]?.cachedTypes.map(({ type, size }) => [type, size])).toContainEqual([
			Artist.key,
			2n,
		]);
		expect(controllers[1]).toMatchObject({
			placement: Placement.EACH_SERVER,
			phase: Phase.BACKING_OFF,
			restarts: 1,
			lastError: { message: expect.stringContaining("never works") },
		});
	});

	it("says of each key why it fails, how often, and when it is tried again, until it succeeds", async () => {
		await using bench = new TestBench();
		let isBroken = true;
		const hanging = Promise.withResolvers<void>();
		const controller = defineController({
			name: "singers",
			manages: Artist,
			concurrency: 4,
			async reconcile(_, { id }) {
				if (id.name === "bad" && isBroken) {
					throw new Error("can't sing");
				}
				await (id.name === "slow" ? hanging.promise : undefined);
			},
		});
		bench.service.put(demo(Artist, "bad"));
		bench.service.put(demo(Artist, "slow"));
		bench.service.put(demo(Artist, "well"));
		const client = clientOf(await bench.start([controller]));
		await bench.settle();

		const [bad, slow, well] = ["bad", "slow", "well"].map((name) => ({
			id: demo(Artist, name).id!,
		}));
		const failing = await client.getController({ name: "singers" });
		const failure = { message: "can't sing", attempts: 1 };
		expect(failing).toMatchObject({
			controller: {
				requests: { failing: 1, active: 1, delayed: 1 },
				reconciles: { failed: 1n, lastFailure: { message: "can't sing", attempts: 0 } },
			},
			failing: [{ state: ReconcileState.DELAYED, failure }],
			running: [{ state: ReconcileState.RUNNING }],
		});
		expect(failing.failing[0]?.key).toMatch(/\/bad$/);
		expect(failing.failing[0]?.dueIn).toBeDefined();
		expect(failing.running[0]?.key).toMatch(/\/slow$/);
		const reconciles = async (of: typeof bad) => (await client.listReconciles(of!)).reconciles;
		expect(await reconciles(bad)).toMatchObject([
			{ controller: "singers", state: ReconcileState.DELAYED, failure },
		]);
		expect(await reconciles(slow)).toMatchObject([{ state: ReconcileState.RUNNING }]);
		expect(await reconciles(well)).toMatchObject([{ state: ReconcileState.IDLE }]);
		expect(await reconciles({ id: demo(Album, "bad").id! })).toEqual([]);

		isBroken = false;
		hanging.resolve();
		bench.service.put(demo(Artist, "bad"));
		await bench.settle();
		const after = await client.getController({ name: "singers" });
		expect(after).toMatchObject({ failing: [], running: [] });
		expect(after.controller).toMatchObject({
			requests: { failing: 0 },
			// What has happened is not forgotten.
			reconciles: { lastFailure: { message: "can't sing" } },
		});
		expect(await reconciles(bad)).toMatchObject([{ state: ReconcileState.IDLE }]);
	});

	it("says that there is no controller of a name", async () => {
		await using bench = new TestBench();
		const controller = defineController({
			...{ name: "one", manages: Artist },
			async reconcile() {},
		});
		const client = clientOf(await bench.start([controller]));
		const refused = await client.getController({ name: "two" }).catch(ConnectError.from);
		expect(refused).toMatchObject({
			code: Code.NotFound,
			rawMessage: 'there is no controller "two"',
		});
	});

	it("returns the graph, its cycles and its drawing", async () => {
		await using bench = new TestBench();
		const one = defineController({
			name: "one",
			manages: Artist,
			watches: [watch(Album, { map: mapOwner })],
			async reconcile() {},
		});
		const other = defineController({
			name: "other",
			manages: Album,
			watches: [watch(Artist, { map: mapOwner })],
			async reconcile() {},
		});
		const graph = await clientOf(await bench.start([one, other])).getDependencyGraph({});
		expect(graph.types).toEqual([Album.key, Artist.key].sort());
		expect(graph.dependencies).toHaveLength(2);
		expect(graph.cycles).toHaveLength(1);
		expect(graph.mermaid).toContain(Artist.key);
	});
});
