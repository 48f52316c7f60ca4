import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Namespace, Partition, type ResourceType, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { LocalLeases, SuspendableLeases, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, wildcard } from "@plinth/storage";
import { openReferences } from "../src/index.ts";
import { controllerClients, ownClient } from "../src/lab/own-client.fixture.ts";
import { metaService, metaTypes } from "../src/registry/meta-types.ts";
import { ServiceDescriptor } from "../src/schema/service-descriptor.ts";
import { Thing, Widget } from "../testdata/types.ts";

/** A resource service in this process, over a storage in memory, with or without references. */
export interface BenchServer extends AsyncDisposable {
	readonly client: Client<typeof ResourceService>;
	/** How many resources of a type are stored. */
	count(type: ResourceType): Promise<number>;
	/** Removes all tombstones, as the reaper does. */
	bury(): Promise<void>;
}

/** A server without references, over a storage in memory or the given one, which it closes. */
export async function bareServer(
	types: readonly ResourceType[],
	backend: StorageBackend = createMemoryBackend(),
): Promise<BenchServer> {
	await ensureDefaultTenancy(backend, systemRuntime);
	return {
		client: ownClient(backend, types, systemRuntime),
		count: countIn(backend),
		bury: () => bury(backend),
		[Symbol.asyncDispose]: () => backend.close(),
	};
}

function countIn(backend: StorageBackend) {
	return async (type: ResourceType) => (await backend.countByType()).get(type.key) ?? 0;
}

async function bury(backend: StorageBackend): Promise<void> {
	const tenancy = { partition: wildcard, namespace: wildcard };
	const { resources } = await backend.list({ type: Tombstone.type, tenancy, namePrefix: "" });
	for (const { id, version } of resources) {
		if (id !== undefined) {
			await backend.commit([{ op: "delete", id, expectedVersion: version }]);
		}
	}
}

/** A deployment to start. */
export interface Spec {
	readonly service: string;
	readonly region: string;
	readonly types: readonly ResourceType[];
	readonly foreignTypes?: readonly ResourceType[];
	/** The storage, which it closes, and its leases. Default: one in memory. */
	readonly storage?: { readonly backend: StorageBackend; readonly leases: LocalLeases };
}

/** `alpha` with things. */
export const alphaSpec = { service: "alpha", region: "r1", types: [Thing] } satisfies Spec;

/** `beta` with widgets, which reference things. */
export const betaSpec = {
	...{ service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] },
} satisfies Spec;

/** Two deployments, `alpha` with things and `beta` with widgets that reference them. */
export async function twoDeployments(): Promise<{ alpha: BenchServer; beta: BenchServer }> {
	const network = new BenchNetwork();
	await network.start(metaSpec);
	return { alpha: await network.start(alphaSpec), beta: await network.start(betaSpec) };
}

/** One service in two regions, `r1` and `r2`. */
export async function twoRegions(): Promise<{ first: BenchServer; second: BenchServer }> {
	const network = new BenchNetwork();
	await network.start(metaSpec);
	const second = { ...alphaSpec, region: "r2" };
	return { first: await network.start(alphaSpec), second: await network.start(second) };
}

/** The meta deployment, with which the others register. */
export const metaSpec = { service: metaService, region: "r1", types: metaTypes } satisfies Spec;

/** Deployments in this process, opened as a server opens them. They call each other in process. */
export class BenchNetwork {
	readonly #transports = new Map<string, Transport>();
	readonly #fallback: Transport | undefined;

	/** @param fallback - what responds at addresses without a server. Default: nothing does. */
	constructor(fallback?: Transport) {
		this.#fallback = fallback;
	}

	/** Starts a deployment; resolves once it serves. The meta deployment is started first. */
	async start({
		service,
		region,
		types,
		foreignTypes = [],
		storage = inMemory(),
	}: Spec): Promise<BenchServer> {
		const { backend, leases: local } = storage;
		await ensureDefaultTenancy(backend, systemRuntime);
		const leases = new SuspendableLeases(local);
		const address = addressOf(service, region);
		const references = await openReferences({
			...{ backend, leases },
			descriptor: new ServiceDescriptor({
				types: [Partition, Namespace, ...types],
				...{ foreignTypes, service },
			}),
			deployment: {
				...{ service, region, address },
				metaAddresses: service === metaService ? [] : [metaAddress],
				connect: (to) => this.#connect(to),
				ownService: () => client,
			},
			onFailure: (failure) => {
				throw failure;
			},
		});
		const client = ownClient(references.store, types, systemRuntime);
		const resources = createResourceService({
			backend: references.store,
			registry: new TypeRegistry([Partition, Namespace, Tombstone, ...types]),
			authorizer: insecureAllowAll,
		});
		this.#transports.set(
			address,
			createInProcessTransport((router) => {
				router.service(SchemaMixinService, references.service);
				router.service(ResourceService, resources);
			}),
		);
		await references.discover(new AbortController().signal);
		references.control({ ...controllerClients(references.store, types, systemRuntime), leases });
		return {
			client,
			count: countIn(backend),
			bury: () => bury(backend),
			[Symbol.asyncDispose]: async () => {
				this.#transports.delete(address);
				await references.close();
				await backend.close();
			},
		};
	}

	/** A transport to the server that has the address at the time of a call. */
	#connect(address: string): Transport {
		const now = () => {
			const transport = this.#transports.get(address) ?? this.#fallback;
			if (transport === undefined) {
				throw new ConnectError(`${address} is down`, Code.Unavailable);
			}
			return transport;
		};
		return {
			unary: async (...call) => now().unary(...call),
			stream: async (...call) => now().stream(...call),
		};
	}
}

/** Short logs fill quickly, so that later growth of the heap is not due to logs. */
function inMemory(): NonNullable<Spec["storage"]> {
	const leases = new LocalLeases();
	return { leases, backend: createMemoryBackend({ leases, limits: { logEvents: 2_000 } }) };
}

const metaAddress = addressOf(metaSpec.service, metaSpec.region);

function addressOf(service: string, region: string): string {
	return `http://${service}-${region}.example`;
}
