import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl, type Transport } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import {
	idOf,
	Namespace,
	newUlid,
	Partition,
	resourceOf,
	Tombstone,
	TypeRegistry,
	typeOf,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { type Clock, LocalLeases, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, type StorageLimits } from "@plinth/storage";
import { onTestFinished } from "vitest";
import { createPeerings, type ReportImport } from "./peering.ts";
import { Good } from "./simulation/goods.fixture.ts";
import { encodeToken } from "./trust/peering-token.ts";
import { Export, Import, peeringTypes } from "./types.ts";

/** Options of `TestNetwork.cluster`. */
export interface TestClusterOptions {
	readonly limits?: Partial<StorageLimits>;
	readonly maxCopies?: number;
	/** Called before each read of `PeeringService`. */
	readonly beforeRead?: (name: string) => void;
	/** Decorates the storage that the peerings use. */
	readonly decorate?: (backend: StorageBackend) => StorageBackend;
	/** The clock of the peerings. */
	readonly clock?: Clock;
	/** Reports the states of Imports; by default, nothing does. */
	readonly report?: ReportImport;
}

export type TestCluster = Awaited<ReturnType<TestNetwork["cluster"]>>;

/** Clusters in this process that reach each other by the names in their addresses. */
export class TestNetwork {
	readonly #transports = new Map<string, Transport>();

	/** A cluster with the type `Good`, which runs its imports after `run`. */
	async cluster(
		name: string,
		{
			limits = {},
			maxCopies,
			decorate = (it) => it,
			beforeRead,
			clock = systemRuntime.clock,
			report = async () => {},
		}: TestClusterOptions = {},
	) {
		const runtime = systemRuntime;
		const leases = new LocalLeases();
		const stored = createMemoryBackend({ runtime, leases, limits });
		const backend = decorate(stored);
		const registry: TypeRegistry = new TypeRegistry([
			...[Partition, Namespace, Tombstone, Good],
			...peeringTypes(() => registry),
		]);
		await ensureDefaultTenancy(stored, runtime);
		const authorizer = insecureAllowAll;
		const resources = createResourceService({ backend: stored, registry, runtime, authorizer });
		const peerings = createPeerings({
			...{ backend, registry, leases, maxCopies, logger: silentLogger },
			runtime: { ...runtime, clock },
			identity: { incarnation: newUlid(runtime) },
			connect: ({ address }) => ({ transport: this.#at(address), close() {} }),
			report,
		});
		const service = peerings.peeringService({
			address: () => `http://${name}`,
			read: async (id, call) => {
				beforeRead?.(id.name);
				const request = { $typeName: "plinth.resource.v1.ReadRequest", id } as const;
				return (await resources.read(request, call)).resource as never;
			},
			write: async (resource, call) => {
				const $typeName = "plinth.resource.v1.WriteRequest";
				const request = { $typeName, resource, createOnly: false } as const;
				return (await resources.write(request, call)).resource as never;
			},
		});
		const own = createInProcessTransport((router) => {
			router.service(ResourceService, resources);
			router.service(PeeringService, service);
		}, runtime);
		const transport = this.serve(name, peerings.exchangeService);
		const client = createInProcessClient(ResourceService, own);
		const api = createInProcessClient(PeeringService, own);
		return {
			...{ name, stored, client, api },
			exchange: createInProcessClient(PeerExchangeService, transport),
			/** Runs the imports until the test has finished. */
			run() {
				const end = new AbortController();
				const running = peerings.run(end.signal);
				onTestFinished(async () => {
					end.abort(new Error("the test has finished"));
					await running;
				});
			},
			async import(init: MessageInitShape<typeof ImportSchema>) {
				const id = idOf(Import, init.partition ?? "");
				const resource = resourceOf(Import, { id, data: create(ImportSchema, init) });
				await client.write({ resource });
			},
			async export(exported: string, peer: string) {
				const data = create(ExportSchema, {
					...{ peers: [peer], partition: "default", types: [{ type: typeOf(Good.type) }] },
				});
				await client.write({ resource: resourceOf(Export, { id: idOf(Export, exported), data }) });
			},
			/** The names of the goods of a partition. */
			async goods(partition: string) {
				const tenancy = { partition, namespace: "*" };
				const query = { type: Good.type, tenancy, namePrefix: "" };
				return (await stored.list(query)).resources.map(({ id }) => id?.name ?? "").sort();
			},
			/** What is reported of the import into a partition. */
			async report(partition: string) {
				const reports = (await api.listPeerings({})).peerings.flatMap(({ imports }) => imports);
				return reports.find((each) => each.partition === partition);
			},
		};
	}

	/** Lets a service be reached under a name. */
	serve(
		name: string,
		service: Partial<ServiceImpl<typeof PeerExchangeService>>,
	): ReturnType<typeof createInProcessTransport> {
		const transport = createInProcessTransport(
			(router) => router.service(PeerExchangeService, service),
			systemRuntime,
		);
		this.#transports.set(name, transport);
		return transport;
	}

	/** Lets one cluster dial another one, or a service that is served. */
	async peer(importer: TestCluster, exporter: TestCluster | string): Promise<void> {
		if (typeof exporter !== "string") {
			const { token } = await exporter.api.createToken({ name: importer.name });
			await importer.api.establish({ name: exporter.name, token });
			return;
		}
		const peeringId = newUlid(systemRuntime);
		const token = encodeToken({
			...{ address: `http://${exporter}`, ca: "", peeringId, secret: "x".repeat(43) },
		});
		await importer.api.establish({ name: exporter, token });
	}

	#at(address: string): Transport {
		const transport = this.#transports.get(new URL(address).hostname);
		if (transport === undefined) {
			throw new ConnectError(`${address} can't be reached`, Code.Unavailable);
		}
		return transport;
	}
}
