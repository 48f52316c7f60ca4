import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService, ResourceSchema } from "@plinth/proto";
import {
	Phase,
	ReconcileState,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { describe, expect, it } from "vitest";
import { type Controller, defineController } from "../define/controller.ts";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { createControllerService } from "../manager/controller-service.ts";
import { TestBench } from "../running-manager.fixture.ts";
import type { ReportingCluster, ReportingServer, ServerReport } from "./cluster.ts";

const described = { address: "http://10.0.0.1:7575", startedAtMs: 1_000, version: "1.0.0" };

/** Servers in this process that ask each other, by name: of those in `missing`, the report is missing. */
class Servers {
	readonly missing = new Map<string, string>();
	readonly #transports = new Map<string, Transport>();

	async start(name: string, bench: TestBench, controllers: readonly Controller[]) {
		const manager = await bench.start(controllers);
		const cluster = this.#clusterOf({ ...described, name });
		const transport = createInProcessTransport((router) =>
			router.service(
				ControllerService,
				createControllerService(manager, {
					read: async (id) => create(ResourceSchema, id && { id }),
					cluster,
				}),
			),
		);
		this.#transports.set(name, transport);
		return createClient(ControllerService, transport);
	}

	#clusterOf(own: ReportingServer): ReportingCluster {
		return {
			own,
			askOthers: (_, question) =>
				Promise.all(
					[...this.#transports]
						.filter(([name]) => name !== own.name)
						.map(async ([name, transport]): Promise<ServerReport<never>> => {
							const server = { ...described, name };
							const missing = this.missing.get(name);
							return missing === undefined
								? { server, response: (await question(transport, {})) as never }
								: { server, response: undefined, missing };
						}),
				),
		};
	}
}

/** A controller that fails at artists whose names begin with `bad`. */
function singers(placement: "singleton" | "each-server" = "each-server") {
	return defineController({
		...{ name: "singers", manages: Artist, placement },
		async reconcile(_, { id }) {
			if (id.name.startsWith("bad")) {
				throw new Error("can't sing");
			}
		},
	});
}

const albums = defineController({ name: "albums", manages: Album, async reconcile() {} });

describe("the controller service of a cluster", () => {
	it("reports on controllers of all servers, also on those that only some have", async () => {
		await using bench = new TestBench();
		await using other = new TestBench();
		const servers = new Servers();
		const first = await servers.start("host/2", bench, [singers()]);
		const second = await servers.start("host/1", other, [albums, singers()]);
		bench.service.put(demo(Artist, "bad-a"));
		other.service.put(demo(Artist, "bad-b"));
		await bench.settle();
		await other.settle();
		for (const client of [first, second]) {
			const list = await client.listControllers({});
			expect(list.servers).toMatchObject([
				{ name: "host/1", version: "1.0.0", missing: "" },
				{ name: "host/2", version: "1.0.0", missing: "" },
			]);
			expect(list.controllers).toMatchObject([
				{ name: "albums", servers: [{ server: "host/1", phase: Phase.RUNNING }] },
				{
					...{ name: "singers", requests: { failing: 2 }, reconciles: { failed: 2n } },
					servers: [
						{ server: "host/1", requests: { failing: 1 } },
						{ server: "host/2", requests: { failing: 1 } },
					],
				},
			]);
			const one = await client.getController({ name: "singers" });
			expect(one.failing.map(({ server }) => server).sort()).toEqual(["host/1", "host/2"]);
			expect((await client.getController({ name: "albums" })).controller?.servers).toHaveLength(1);
			const { reconciles } = await client.listReconciles({ id: demo(Artist, "bad-a").id! });
			expect(reconciles).toMatchObject([
				{ controller: "singers", server: "host/1", state: ReconcileState.IDLE },
				{ controller: "singers", server: "host/2", state: ReconcileState.DELAYED },
			]);
		}
		const alone = await first.listControllers({ thisServerOnly: true });
		expect(alone.servers.map(({ name }) => name)).toEqual(["host/2"]);
		expect(alone.controllers).toMatchObject([{ name: "singers", requests: { failing: 1 } }]);
		const absent = { name: "albums", thisServerOnly: true };
		const refused = await first.getController(absent).catch(ConnectError.from);
		expect(refused).toMatchObject({ code: Code.NotFound });
	});

	it("names servers whose reports are missing", async () => {
		await using bench = new TestBench();
		await using other = new TestBench();
		const servers = new Servers();
		const client = await servers.start("host/1", bench, [singers()]);
		await servers.start("host/2", other, [singers(), albums]);
		servers.missing.set("host/2", "did not respond in time");
		const expected = [{ missing: "" }, { missing: "did not respond in time" }];
		const list = await client.listControllers({});
		expect(list.servers).toMatchObject(expected);
		expect(list.controllers).toMatchObject([{ name: "singers", servers: [{ server: "host/1" }] }]);
		expect((await client.getController({ name: "singers" })).servers).toMatchObject(expected);
		const reconciles = await client.listReconciles({ id: demo(Artist, "a").id! });
		expect(reconciles.servers).toMatchObject(expected);
		// Callers who may read the resource need not know where its servers are.
		expect(reconciles.servers.map(({ address, version }) => address + version)).toEqual(["", ""]);
		const refused = await client.getController({ name: "albums" }).catch(ConnectError.from);
		expect(refused).toMatchObject({
			code: Code.NotFound,
			rawMessage:
				'there is no controller "albums" on the servers that have responded; host/2 did not respond in time',
		});
	});

	it("has one order of servers with the same name and address", async () => {
		const [killed, started] = [1_000, 2_000].map((startedAtMs) => ({
			...{ ...described, name: "host/1", startedAtMs },
		})) as [ReportingServer, ReportingServer];
		const orderAt = async (own: ReportingServer, other: ReportingServer) => {
			const client = createClient(
				ControllerService,
				createInProcessTransport((router) =>
					router.service(
						ControllerService,
						createControllerService(
							{
								state: () => ({ controllers: [], holdsLease: undefined }),
								work: () => undefined,
								reconcilesOf: () => [],
								graph: () => ({ types: [], dependencies: [], cycles: [] }),
							},
							{
								read: async () => create(ResourceSchema),
								cluster: {
									own,
									askOthers: async () => [{ server: other, response: undefined, missing: "hangs" }],
								},
							},
						),
					),
				),
			);
			const { servers } = await client.listControllers({});
			return servers.map(({ startedAt }) => Number(startedAt?.seconds));
		};
		expect(await orderAt(started, killed)).toEqual([1, 2]);
		expect(await orderAt(killed, started)).toEqual([1, 2]);
	});
});
