import { create } from "@bufbuild/protobuf";
import type { Client, Transport } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { PartitionSchema, type Resource, ResourceService } from "@plinth/proto";
import {
	type OfferRoute,
	OfferRouteSchema,
	RegionalCopyService,
} from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import {
	defineType,
	idOf,
	Namespace,
	newUlid,
	Partition,
	type ResourceType,
	resourceOf,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { LocalLeases, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, type StorageLimits } from "@plinth/storage";
import { onTestFinished } from "vitest";
import { GoodSchema as LaterGoodSchema } from "../../testdata/gen/acme/goods/v2/goods_pb.ts";
import { PeeringRecords } from "../records/peering-records.ts";
import { Good } from "../simulation/goods.fixture.ts";
import { createRegionalCopies } from "./regional-copies.ts";

/** A later version of `Good`. */
export const LaterGood = defineType(LaterGoodSchema);

/** A good in the later version. */
export function laterGood(name: string, note: string): Resource {
	const data = create(LaterGoodSchema, { note });
	return resourceOf(LaterGood, { id: idOf(LaterGood, name), data });
}

/** Options of `TestRegions.region`. */
export interface TestRegionOptions {
	readonly types?: readonly ResourceType[];
	readonly limits?: Partial<StorageLimits>;
	readonly maxCopies?: number;
	/** Decorates the storage of the copies. */
	readonly decorate?: (backend: StorageBackend) => StorageBackend;
	/**
	 * The region whose storage and deployment it continues, as a server that was replaced by one with other types.
	 * It must not copy: the storage knows the leases of the first server only.
	 */
	readonly continues?: TestRegion;
}

/** A region of `TestRegions`. */
export interface TestRegion {
	readonly name: string;
	/** The uid of the deployment. */
	readonly uid: string;
	readonly backend: StorageBackend;
	readonly client: Client<typeof ResourceService>;
	/** What other regions call. */
	readonly transport: Transport;
	readonly offers: Client<typeof RegionalCopyService>;
	/** The route of calls of another region. */
	route(from: string): OfferRoute;
	/** Copies until the test has finished, or until what it returns is called. */
	run(): () => Promise<void>;
	partitionPolicy(...regions: string[]): Promise<void>;
	/** The copies of another region, as `v1 name`. */
	copiesOf(other: string): Promise<readonly string[]>;
	/** The record of the copies of a partition of another region: of `default`, unless another one is named. */
	record(other: string, partition?: string): Promise<ImportRecord | undefined>;
}

/** The regions of one service in this process. */
export class TestRegions {
	readonly #regions = new Map<string, TestRegion>();
	readonly #deleted = new Set<string>();

	/** Deletes the deployment of a region. */
	delete({ name, uid }: TestRegion): void {
		this.#regions.delete(name);
		this.#deleted.add(uid);
	}

	/** A region with some types, which copies from the others after `run`. */
	async region(
		name: string,
		{
			types = [Good],
			limits = {},
			maxCopies,
			decorate = (it) => it,
			continues,
		}: TestRegionOptions = {},
	): Promise<TestRegion> {
		const runtime = systemRuntime;
		const leases = new LocalLeases();
		const backend: StorageBackend =
			continues?.backend ?? createMemoryBackend({ runtime, leases, limits });
		const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...types]);
		await ensureDefaultTenancy(backend, runtime);
		const uid: string = continues?.uid ?? newUlid(runtime);
		const copies = createRegionalCopies({
			...{ registry, leases, runtime, maxCopies, logger: silentLogger },
			backend: decorate(backend),
			own: { service: "goods", region: name, uid: async () => uid },
			regions: {
				others: async () =>
					[...this.#regions.values()]
						.filter((each) => each.name !== name)
						.map((each) => ({ region: each.name, uid: each.uid, addresses: [each.name] })),
				isDeleted: async (deployment) => this.#deleted.has(deployment),
				connect: (address) => this.#region(address).transport,
			},
		});
		const resources = createResourceService({
			...{ backend, registry, runtime, region: name, authorizer: insecureAllowAll },
		});
		const transport = createInProcessTransport(
			(router) => router.service(RegionalCopyService, copies.service),
			runtime,
		);
		const own = createInProcessTransport(
			(router) => router.service(ResourceService, resources),
			runtime,
		);
		const client = createInProcessClient(ResourceService, own);
		const region: TestRegion = {
			...{ name, uid, backend, client, transport },
			offers: createInProcessClient(RegionalCopyService, transport),
			route: (from: string): OfferRoute =>
				create(OfferRouteSchema, {
					...{ protocolVersion: 1, service: "goods", region: from, toUid: uid },
				}),
			run(): () => Promise<void> {
				const end = new AbortController();
				const running = copies.run(end.signal);
				const stop = async () => {
					end.abort(new Error("the server stops"));
					await running;
				};
				onTestFinished(stop);
				return stop;
			},
			async partitionPolicy(...regions: string[]) {
				const data = create(PartitionSchema, { copies: { regions } });
				const id = idOf(Partition, "default");
				await client.write({ resource: resourceOf(Partition, { id, data }) });
			},
			async copiesOf(other: string): Promise<readonly string[]> {
				const { resources: found } = await backend.list({
					...{ type: Good.type, namePrefix: "", region: other },
					tenancy: { partition: "*", namespace: "*" },
				});
				return found.map(({ id }) => `${id?.type?.groupVersion} ${id?.name}`);
			},
			async record(other: string, partition = "default"): Promise<ImportRecord | undefined> {
				const all = await new PeeringRecords(backend, runtime).all("regional");
				return all
					.map(({ value }) => value)
					.find((each) => each.region === other && each.partition === partition);
			},
		};
		this.#regions.set(name, region);
		return region;
	}

	#region(name: string): TestRegion {
		const region = this.#regions.get(name);
		if (region === undefined) {
			throw new Error(`no region ${name}`);
		}
		return region;
	}
}
