import { Deployment, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import type { OtherRegion } from "@plinth/peering";
import type { Deployment as DeploymentMessage } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import type { RegistryEntry } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { decodeShared, idOf } from "@plinth/resource";
import type { ReadOptions, StorageBackend } from "@plinth/storage";

/** A Deployment, as the registry view in the storage has it. */
interface Registered {
	readonly uid: string;
	readonly data: DeploymentMessage;
	/** The addresses of its servers that run. */
	readonly endpoints: readonly string[];
}

/**
 * The deployments of one service in other regions, from the registry view that references keep in the storage. A deployment
 * that another one has taken over, one that was deleted and one that is disabled are left out.
 */
export class RegisteredRegions {
	readonly #backend: Pick<StorageBackend, "list" | "lookup">;
	readonly #own: { readonly service: string; readonly region: string };

	constructor(
		backend: Pick<StorageBackend, "list" | "lookup">,
		own: { readonly service: string; readonly region: string },
	) {
		this.#backend = backend;
		this.#own = own;
	}

	/** One deployment of each other region that has one. @throws StorageUnavailable. */
	async others(): Promise<readonly OtherRegion[]> {
		const entries = await this.#entries();
		const deleted = deletedUids(entries);
		const registered = deploymentsOf(entries).filter(
			({ uid, data }) => data.service === this.#own.service && !deleted.has(uid),
		);
		const replaced = new Set(
			registered.flatMap(({ data }) => [data.predecessorUid, ...data.otherPredecessorUids]),
		);
		const current = new Map<string, Registered>();
		for (const each of registered) {
			const { region, disabled } = each.data;
			const other = current.get(region);
			// Of two that do not know of each other, the one with the greater uid takes over.
			const isLater = other === undefined || each.uid > other.uid;
			if (region !== this.#own.region && !replaced.has(each.uid) && !disabled && isLater) {
				current.set(region, each);
			}
		}
		return [...current.values()].map(({ uid, data, endpoints }) => ({
			...{ region: data.region, uid },
			addresses: [...new Set(endpoints.length > 0 ? endpoints : [data.address])],
		}));
	}

	/** Whether there is the permanent record that the deployment was deleted. @throws StorageUnavailable. */
	async isDeleted(uid: string): Promise<boolean> {
		return deletedUids(await this.#entries({ consistency: "strong" })).has(uid);
	}

	/** The uid of this deployment; `undefined` before its first registration. @throws StorageUnavailable. */
	async ownUid(): Promise<string | undefined> {
		const stored = await this.#backend.lookup(idOf(ResourceShadow, "deployment"));
		const record = stored && decodeShared(ResourceShadow, stored).data.record;
		return record?.case === "deployment" ? record.value.uid : undefined;
	}

	async #entries(options: ReadOptions = {}): Promise<readonly RegistryEntry[]> {
		const tenancy = { partition: "", namespace: "" };
		const query = { type: ResourceShadow.type, tenancy, namePrefix: "registry-" };
		const { resources } = await this.#backend.list(query, options);
		return resources.flatMap((resource) => {
			const { record } = decodeShared(ResourceShadow, resource).data;
			return record.case === "registryEntry" ? [record.value] : [];
		});
	}
}

/** Of a Deployment that several sources have reported, the newest content. */
function deploymentsOf(entries: readonly RegistryEntry[]): readonly Registered[] {
	const newest = new Map<string, RegistryEntry>();
	for (const entry of entries) {
		const { id, generation = "" } = entry.resource ?? {};
		if (id?.type?.kind === Deployment.type.kind) {
			const known = newest.get(id.uid);
			if (known === undefined || generation > (known.resource?.generation ?? "")) {
				newest.set(id.uid, entry);
			}
		}
	}
	return [...newest].flatMap(([uid, { resource, endpoints }]) =>
		resource === undefined
			? []
			: [{ uid, data: decodeShared(Deployment, resource).data, endpoints }],
	);
}

function deletedUids(entries: readonly RegistryEntry[]): ReadonlySet<string> {
	const [, , , DeletedDeployment] = metaTypes;
	return new Set(
		entries.flatMap(({ resource }) =>
			resource?.id?.type?.kind === DeletedDeployment.type.kind
				? [decodeShared(DeletedDeployment, resource).data.uid]
				: [],
		),
	);
}
