import type { Cache } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import { nameKey, type ResourceType } from "@plinth/resource";
import { isCached } from "../define/cached-types.ts";
import type { Change } from "../define/change.ts";
import type { WatchedRegions } from "../define/watch.ts";
import type { Watched } from "./open-watch.ts";
import type { UndecodableResources } from "./undecodable.ts";

/**
 * Applies the changes of one type to the cache of a run. The cache stores the shared object, whether or
 * not its data can be decoded (undecodable.ts). An insert that fails throws and ends the run, since the
 * cache would lack a resource that the server has.
 *
 * Invariant: the cache has copies of these regions alone, whatever the server sends.
 */
export class CacheUpdater implements Watched {
	readonly type: ResourceType;
	readonly regions: WatchedRegions;
	readonly #cache: Cache;
	readonly #undecodable: Pick<UndecodableResources, "forget">;

	constructor(
		{ type, regions }: Watched,
		cache: Cache,
		undecodable: Pick<UndecodableResources, "forget">,
	) {
		this.type = type;
		this.regions = regions;
		this.#cache = cache;
		this.#undecodable = undecodable;
	}

	/** The cached resource of that name and region, as a shared object. */
	get(id: ID): Resource | undefined {
		return this.#cache.get(this.type, id)?.resource;
	}

	/** All cached resources and copies at the time of the call, as shared objects. */
	*all(): Generator<Resource> {
		for (const { resource } of this.#cache.iterate(this.type, { region: "*" })) {
			yield resource;
		}
	}

	/** Inserts a resource, or replaces the earlier one of that name. Skips one that is not to be cached. */
	upsert(resource: Resource | undefined): Change | undefined {
		const current = requireId(this.type, resource);
		if (!isCached(this.regions, current)) {
			return undefined;
		}
		const previous = this.get(current.id);
		this.#undecodable.forget(this.type, current.id);
		this.#cache.insert(current);
		return previous === undefined
			? { kind: "created", current }
			: { kind: "updated", previous, current };
	}

	/** Removes a resource. If it is not cached, the change contains the resource of the event. Skips like `upsert`. */
	delete(resource: Resource | undefined): Change | undefined {
		const last = requireId(this.type, resource);
		if (!isCached(this.regions, last)) {
			return undefined;
		}
		this.#undecodable.forget(this.type, last.id);
		return { kind: "deleted", previous: this.#cache.delete(last) ?? last };
	}

	/**
	 * Makes the cache equal to a snapshot, given by name: inserts resources that differ and removes those
	 * that the snapshot lacks, or whose name belongs to one that is not to be cached. Returns the changes.
	 */
	replace(snapshot: ReadonlyMap<string, Resource>): Change[] {
		const changes: (Change | undefined)[] = [];
		for (const resource of this.all()) {
			const current = resource.id && snapshot.get(nameKey(resource.id));
			if (current === undefined || !isCached(this.regions, current)) {
				changes.push(this.delete(resource));
			}
		}
		for (const resource of snapshot.values()) {
			const cached = resource.id && this.get(resource.id);
			if (cached?.version !== resource.version || cached.id?.uid !== resource.id?.uid) {
				changes.push(this.upsert(resource));
			}
		}
		return changes.filter((change) => change !== undefined);
	}
}

/** A resource with an ID. */
export type ResourceWithId = Resource & { readonly id: ID };

/** @throws Error if a watch event lacks its resource, or the resource its ID. */
export function requireId(type: ResourceType, resource: Resource | undefined): ResourceWithId {
	if (!hasId(resource)) {
		throw new Error(`watch of ${type.key} sent an event without a resource or without its ID`);
	}
	return resource;
}

function hasId(resource: Resource | undefined): resource is ResourceWithId {
	return resource?.id !== undefined;
}
