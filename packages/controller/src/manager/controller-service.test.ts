import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService } from "@plinth/proto";
import { Phase, Placement } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
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
		router.service(ControllerService, createControllerService(manager));
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
