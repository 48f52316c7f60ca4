import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { RegionalCopyService } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { Namespace, newUlid, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { LocalLeases, silentLogger } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend, decorateBackend, type StorageBackend } from "@plinth/storage";
import type { ConnectPeer } from "../connect.ts";
import { createPeerings } from "../peering.ts";
import { createRegionalCopies, type RegionalCopiesOptions } from "../regional/regional-copies.ts";
import { peeringTypes } from "../types.ts";
import { Good } from "./goods.fixture.ts";

/** A server of a simulated cluster. */
interface SimulatedServer {
	readonly client: Client<typeof ResourceService>;
	readonly peerings: Client<typeof PeeringService>;
	readonly exchange: Transport;
	stop(): Promise<void>;
}

/** Options of `SimulatedCluster`. */
export interface ClusterOptions {
	readonly name: string;
	readonly runtime: SeededRuntime;
	readonly connect: ConnectPeer;
	/** Plants a fault in the storage that the peerings use. */
	readonly withFault: (backend: StorageBackend) => StorageBackend;
	/** The region that the cluster is of a service, if it is one; its uid is the incarnation of the storage. */
	readonly region?: Omit<RegionalCopiesOptions["own"], "uid"> &
		Pick<RegionalCopiesOptions, "regions">;
	/** Throws at times, as a storage that can't be reached. */
	readonly mayFail: () => void;
}

/** So few that changes are often no longer known. */
const logEvents = 3;

/** A cluster whose servers stop and start, and whose storage can be restored. */
export class SimulatedCluster {
	readonly name: string;
	readonly #options: ClusterOptions;
	readonly #leases = new LocalLeases();
	/** The storage without faults. */
	backend: StorageBackend;
	#incarnation: string;
	#server: SimulatedServer | undefined;
	/** The resources of a backup. */
	#backup: Awaited<ReturnType<SimulatedCluster["contents"]>> | undefined;

	constructor(options: ClusterOptions) {
		this.#options = options;
		this.name = options.name;
		this.backend = this.#createBackend();
		this.#incarnation = newUlid(options.runtime);
	}

	/** The incarnation of its storage. */
	get incarnation(): string {
		return this.#incarnation;
	}

	get isUp(): boolean {
		return this.#server !== undefined;
	}

	/** @throws ConnectError Unavailable if the cluster is down. */
	get server(): SimulatedServer {
		if (this.#server === undefined) {
			throw new ConnectError(`${this.name} is down`, Code.Unavailable);
		}
		return this.#server;
	}

	async start(): Promise<void> {
		const { runtime, connect, withFault, mayFail, region } = this.#options;
		const stored = this.backend;
		const failing = decorateBackend(stored, {
			async commit(mutations, options) {
				mayFail();
				const result = await stored.commit(mutations, options);
				mayFail();
				return result;
			},
		});
		const backend = withFault(failing);
		const registry: TypeRegistry = new TypeRegistry([
			...[Partition, Namespace, Tombstone, Good],
			...peeringTypes(() => registry),
		]);
		await ensureDefaultTenancy(this.backend, runtime);
		const resources = createResourceService({
			backend: this.backend,
			registry,
			runtime,
			authorizer: insecureAllowAll,
		});
		const end = new AbortController();
		const options = {
			...{ backend, registry, runtime, connect, leases: this.#leases, logger: silentLogger },
			identity: { incarnation: this.#incarnation },
			report: async () => {},
		};
		const peerings = createPeerings(options);
		// Another server of the cluster, which takes over when the first one loses its lease.
		const standby = createPeerings(options);
		const service = peerings.peeringService({
			address: () => `http://${this.name}`,
			read: async (id, call) => {
				const { resource } = await resources.read(
					{ $typeName: "plinth.resource.v1.ReadRequest", id },
					call,
				);
				return resource as never;
			},
			write: async (resource, call) => {
				const request = {
					$typeName: "plinth.resource.v1.WriteRequest",
					resource,
					createOnly: false,
				} as const;
				return (await resources.write(request, call)).resource as never;
			},
		});
		const transport = createInProcessTransport((router) => {
			router.service(ResourceService, resources);
			router.service(PeeringService, service);
		}, runtime);
		const uid = this.#incarnation;
		const copiers =
			region === undefined
				? []
				: [1, 2].map(() =>
						createRegionalCopies({
							...{ ...options, own: { ...region, uid: async () => uid } },
							regions: region.regions,
						}),
					);
		const exchange = createInProcessTransport((router) => {
			router.service(PeerExchangeService, peerings.exchangeService);
			for (const { service: copies } of copiers.slice(0, 1)) {
				router.service(RegionalCopyService, copies);
			}
		}, runtime);
		const running = Promise.all(
			[peerings, standby, ...copiers].map((each) => each.run(end.signal)),
		);
		this.#server = {
			client: createInProcessClient(ResourceService, transport),
			peerings: createInProcessClient(PeeringService, transport),
			exchange,
			async stop() {
				end.abort(new Error("the server stops"));
				await running;
			},
		};
	}

	/** Stops it. Calls of peers that are under way end by themselves, as those of a killed server. */
	async stop(): Promise<void> {
		const server = this.#server;
		this.#server = undefined;
		await server?.stop();
	}

	/** Another server runs the imports from now on. */
	revokeLease(): void {
		this.#leases.revoke("peering-imports");
		this.#leases.revoke("regional-copies");
	}

	async takeBackup(): Promise<void> {
		this.#backup = await this.contents();
	}

	/**
	 * Restores the backup: all that was written since is lost, and versions continue above all that were issued. The
	 * cluster must be stopped.
	 */
	async restore(): Promise<void> {
		const backup = this.#backup;
		if (backup === undefined) {
			return;
		}
		const newest = Number(await this.backend.catchUp(new AbortController().signal));
		this.backend = this.#createBackend();
		const id = { ...Partition.type, $typeName: "plinth.resource.v1.Type" } as const;
		for (let revision = 0; revision < newest; revision += 2) {
			const dummy = backup[0];
			if (dummy?.id === undefined) {
				break;
			}
			const name = { ...dummy.id, type: id, name: "dummy" };
			const { version } = await this.backend.commit([
				{ op: "put", resource: { ...dummy, id: name }, expectedVersion: "" },
			]);
			await this.backend.commit([{ op: "delete", id: name, expectedVersion: version }]);
		}
		for (const resource of backup) {
			await this.backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
		this.#incarnation = newUlid(this.#options.runtime);
	}

	/** All resources. */
	async contents() {
		const types = [...(await this.backend.countByType()).keys()].map((key) => key.split("."));
		const lists = types.map(([group = "", groupVersion = "", kind = ""]) =>
			this.backend.list({
				type: { group, kind },
				tenancy: { partition: "*", namespace: "*" },
				namePrefix: "",
				region: "*",
				...{ groupVersion },
			}),
		);
		return (await Promise.all(lists)).flatMap(({ resources }) => resources);
	}

	#createBackend(): StorageBackend {
		const { runtime } = this.#options;
		return createMemoryBackend({ runtime, leases: this.#leases, limits: { logEvents } });
	}
}
