import { create } from "@bufbuild/protobuf";
import { requeueAfter } from "@plinth/controller";
import { Condition_State } from "@plinth/proto";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { type ReconcileOutcome, reconcileOnce, startTestServer } from "@plinth/testing";
import { describe, expect, it } from "vitest";
import { endpointsController } from "../src/endpoints/endpoints-controller.ts";
import {
	HealthCheck,
	HealthCheckSchema,
	type Prober,
	Service,
	ServiceEndpoints,
	ServiceSchema,
	Workload,
	WorkloadSchema,
} from "../src/index.ts";
import { createProbeController } from "../src/probe/probe-controller.ts";
import { addressOf } from "../src/probe/target.ts";

const types = [Service, Workload, HealthCheck, ServiceEndpoints];

const web = { workloadPrefix: "web-", portName: "http" };
const web1 = { host: "one.test", ports: { http: 80 } };
const check = {
	probe: { case: "http", value: { portName: "http", path: "/" } },
	intervalMs: 1_000,
	timeoutMs: 500,
} as const;

const service = resourceOf(Service, {
	id: idOf(Service, "web"),
	data: create(ServiceSchema, web),
});
const workload = resourceOf(Workload, {
	id: idOf(Workload, "web-1"),
	data: create(WorkloadSchema, web1),
});
const withoutPorts = resourceOf(Workload, {
	id: idOf(Workload, "web-1"),
	data: create(WorkloadSchema, { host: "one.test" }),
});
const healthCheck = resourceOf(HealthCheck, {
	id: idOf(HealthCheck, "web-1"),
	data: create(HealthCheckSchema, check),
	owner: idOf(Workload, "web-1"),
});
const orphan = resourceOf(HealthCheck, {
	id: idOf(HealthCheck, "web-1"),
	data: create(HealthCheckSchema, check),
	owner: idOf(Workload, "web-1", {}, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
});

/** A prober in front of a network in which only some addresses respond. */
function proberOf(up: ReadonlySet<string>): Prober {
	return async (target) => {
		const passed = up.has(addressOf(target));
		return { passed, reason: passed ? "Up" : "Down", message: addressOf(target) };
	};
}

describe("one reconcile of the endpoints controller", () => {
	const id = idOf(Service, "web");

	/** The endpoints that it wrote, as `host:port`. */
	function written({ changes: [change] }: ReconcileOutcome): readonly string[] | undefined {
		return change?.kind === "put"
			? decode(ServiceEndpoints, change.resource).data.endpoints.map((e) => `${e.host}:${e.port}`)
			: undefined;
	}

	it("writes the workloads that the service selects", async () => {
		const outcome = await reconcileOnce(endpointsController, {
			id,
			resources: [service, workload],
		});
		expect(written(outcome)).toEqual(["one.test:80"]);
		expect(outcome.requeue).toBeUndefined();
	});

	it("leaves out a workload whose check has not passed yet", async () => {
		const resources = [service, workload, healthCheck];
		expect(written(await reconcileOnce(endpointsController, { id, resources }))).toEqual([]);
	});

	it("writes nothing where nothing differs", async () => {
		const existing = resourceOf(ServiceEndpoints, {
			id: idOf(ServiceEndpoints, "web"),
			owner: idOf(Service, "web"),
		});
		const resources = [service, existing];
		expect((await reconcileOnce(endpointsController, { id, resources })).changes).toEqual([]);
	});

	it("deletes endpoints whose service is gone", async () => {
		const orphan = resourceOf(ServiceEndpoints, {
			id: idOf(ServiceEndpoints, "web"),
			owner: idOf(Service, "web", {}, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
		});
		const { changes } = await reconcileOnce(endpointsController, { id, resources: [orphan] });
		expect(changes).toMatchObject([{ kind: "delete", id: { name: "web" } }]);
	});
});

describe("one reconcile of the probe controller", () => {
	it("writes what it found as the check's status, and comes back after the interval", async () => {
		const controller = createProbeController(proberOf(new Set(["http://one.test:80/"])));
		const { requeue, changes } = await reconcileOnce(controller, {
			id: idOf(HealthCheck, "web-1"),
			resources: [workload, healthCheck],
		});
		expect(requeue).toEqual(requeueAfter(1_000));
		expect(changes).toMatchObject([
			{
				resource: {
					status: { "catalog-prober": { conditions: [{ state: Condition_State.TRUE }] } },
				},
			},
		]);
	});

	it("has nothing to do for a check that is deleted while its workload is probed", async () => {
		const id = idOf(HealthCheck, "web-1");
		let deleteCheck = async () => {};
		const controller = createProbeController(async () => {
			await deleteCheck();
			return { passed: true, reason: "Up", message: "up" };
		});
		const { requeue, changes } = await reconcileOnce(
			{
				...controller,
				reconcile: (ctx, request) => {
					deleteCheck = () => ctx.delete(id);
					return controller.reconcile(ctx, request);
				},
			},
			{ id, resources: [workload, healthCheck] },
		);
		expect(requeue).toBeUndefined();
		expect(changes.map(({ kind }) => kind)).toEqual(["delete"]);
	});

	it.each([
		["workload", [orphan]],
		["port", [withoutPorts, healthCheck]],
	])(
		"has nothing to do for a check without a %s that has just been deleted",
		async (_, resources) => {
			const id = idOf(HealthCheck, "web-1");
			const controller = createProbeController(proberOf(new Set()));
			const { requeue, changes } = await reconcileOnce(
				{
					...controller,
					reconcile: async (ctx, request) => {
						await ctx.delete(id);
						return controller.reconcile(ctx, request);
					},
				},
				{ id, resources },
			);
			expect(requeue).toBeUndefined();
			expect(changes.map(({ kind }) => kind)).toEqual(["delete"]);
		},
	);

	it("gives up on a target that says nothing", async () => {
		const silent: Prober = (_, signal) =>
			new Promise((_resolve, reject) => {
				signal.addEventListener("abort", () => reject(signal.reason));
			});
		const { changes } = await reconcileOnce(createProbeController(silent), {
			id: idOf(HealthCheck, "web-1"),
			resources: [workload, healthCheck],
		});
		expect(changes).toMatchObject([
			{ resource: { status: { "catalog-prober": { conditions: [{ reason: "TimedOut" }] } } } },
		]);
	});
});

describe("the controllers of the catalog together", () => {
	async function startCatalog(up: ReadonlySet<string>, seed = 1) {
		const controllers = [createProbeController(proberOf(up)), endpointsController];
		const server = await startTestServer({ types, controllers, seed, storageDelays: 0.2 });
		return {
			server,
			/** Awaits rest; probing goes on for ever. */
			rest: () => server.quiesce({ alwaysRequeueing: ["catalog-prober"] }),
			hosts: async () =>
				(await server.read(ServiceEndpoints, "web"))?.data.endpoints.map(({ host }) => host),
			[Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
		};
	}

	it("make a workload an endpoint for as long as its check passes", async () => {
		const up = new Set(["http://one.test:80/"]);
		await using catalog = await startCatalog(up);
		const { server, rest, hosts } = catalog;
		await server.write(Service, "web", web);
		const { resource } = await server.write(Workload, "web-1", web1);
		await server.write(HealthCheck, "web-1", check, { ...(resource.id && { owner: resource.id }) });
		await rest();
		expect(await hosts()).toEqual(["one.test"]);

		up.clear();
		await server.advance(1_000);
		expect(await hosts()).toEqual([]);
	});

	it("catch up when the watch of workloads has stood still", async () => {
		await using catalog = await startCatalog(new Set());
		const { server, rest, hosts } = catalog;
		await server.write(Service, "web", web);
		await rest();
		const stall = server.faults.stallWatches("event", { type: Workload });
		await server.write(Workload, "web-1", web1);
		await rest();
		expect(await hosts()).toEqual([]);
		stall.release();
		await rest();
		expect(await hosts()).toEqual(["one.test"]);
	});

	it("arrive at the same endpoints in whatever order things happen, and after restarts", async () => {
		for (let seed = 1; seed <= 50; seed++) {
			await using catalog = await startCatalog(new Set(), seed);
			const { server, rest, hosts } = catalog;
			const names = ["web-1", "web-2", "web-3", "api-1"];
			const writes = names.map((name) => server.write(Workload, name, { ...web1, host: name }));
			await Promise.all([...writes, server.write(Service, "web", web)]);
			await Promise.all([server.delete(Workload, "web-2"), server.restartControllers()]);
			await rest();
			expect({ seed, hosts: await hosts() }).toEqual({ seed, hosts: ["web-1", "web-3"] });
		}
	});
});
