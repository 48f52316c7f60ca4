import type { Client, ServiceImpl } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import type { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { ResourceType } from "@plinth/resource";
import { Namespace, Partition, Tombstone } from "@plinth/resource";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, wildcard } from "@plinth/storage";
import { ReferenceManager } from "../src/controller/reference-manager.ts";
import { controllerClients, ownClient } from "../src/lab/own-client.fixture.ts";
import { createConstraints } from "../src/node/constraints.ts";
import type { DeploymentInfo, Environment } from "../src/registry/environment.ts";
import { ServiceDescriptor } from "../src/schema/service-descriptor.ts";
import { Thing, Widget } from "../testdata/types.ts";

/** An in-process resource service over a storage with or without constraints. */
export interface BenchServer extends AsyncDisposable {
	readonly client: Client<typeof ResourceService>;
	/** How many resources of a type are stored. */
	count(type: ResourceType): Promise<number>;
	/** Removes all tombstones, as the reaper does. */
	bury(): Promise<void>;
}

/** A server without constraints. */
export async function bareServer(types: readonly ResourceType[]): Promise<BenchServer> {
	const backend = createMemoryBackend();
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

interface Spec {
	readonly service: string;
	readonly region: string;
	readonly type: ResourceType;
}

/** Two deployments, `alpha` with things and `beta` with widgets that reference them. */
export async function twoDeployments(): Promise<{ alpha: BenchServer; beta: BenchServer }> {
	const [alpha, beta] = await deploy(
		{ service: "alpha", region: "r1", type: Thing },
		{ service: "beta", region: "r1", type: Widget },
	);
	return { alpha, beta };
}

/** One service in two regions, `r1` and `r2`. */
export async function twoRegions(): Promise<{ first: BenchServer; second: BenchServer }> {
	const [first, second] = await deploy(
		{ service: "alpha", region: "r1", type: Thing },
		{ service: "alpha", region: "r2", type: Thing },
	);
	return { first, second };
}

async function deploy(...specs: readonly [Spec, Spec]): Promise<[BenchServer, BenchServer]> {
	const mixins = new Map<string, ServiceImpl<typeof SchemaMixinService>>();
	const infoOf = ({ service, region }: Spec): DeploymentInfo => ({
		uid: `uid-of-${service}-${region}`,
		name: `${service}-${region}`,
		service,
		region,
		version: "v1",
		disabled: false,
		predecessorUid: "",
	});
	const infos = specs.map(infoOf);
	const environmentOf = (self: DeploymentInfo): Environment => {
		const find = (service: string, region: string) =>
			infos.find((each) => each.service === service && each.region === region);
		return {
			self,
			deployments: () => infos,
			byUid: (uid) => infos.find((each) => each.uid === uid),
			successorOf: () => undefined,
			find,
			findOwner: (_group, service, region) => find(service || self.service, region),
			client: (uid) =>
				createInProcessClient(
					SchemaMixinService,
					createInProcessTransport((router) =>
						router.service(SchemaMixinService, mixins.get(uid) ?? {}),
					),
				),
			isDeleted: async () => false,
			onChange: () => () => {},
		};
	};
	const start = async (spec: Spec): Promise<BenchServer> => {
		const { service, type } = spec;
		const self = infoOf(spec);
		// Short logs fill quickly, so that later growth of the heap is not due to logs.
		const backend = createMemoryBackend({ limits: { logEvents: 2_000 } });
		await ensureDefaultTenancy(backend, systemRuntime);
		const constraints = createConstraints({
			backend,
			descriptor: new ServiceDescriptor({
				types: [Partition, Namespace, type],
				foreignTypes: [Thing],
				service,
			}),
			environment: environmentOf(self),
		});
		await constraints.schemaPass.begin();
		await constraints.schemaPass.complete(new AbortController().signal);
		mixins.set(self.uid, constraints.service);
		const stop = new AbortController();
		const manager = new ReferenceManager({
			constraints,
			...controllerClients(constraints.store, [type], systemRuntime),
			onFailure: (failure) => {
				throw failure;
			},
		});
		const running = Promise.all([constraints.run(stop.signal), manager.run(stop.signal)]);
		return {
			client: ownClient(constraints.store, [type], systemRuntime),
			count: countIn(backend),
			bury: () => bury(backend),
			[Symbol.asyncDispose]: async () => {
				stop.abort();
				await running;
				await backend.close();
			},
		};
	};
	return [await start(specs[0]), await start(specs[1])];
}
