import type { Cache } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import { nameKey, type ResourceType } from "@plinth/resource";
import type { Change } from "../define/change.ts";
import type { UndecodableResources } from "./undecodable.ts";

/**
 * The one way of resources of a type into the cache of a run. What goes in is the shared object, whether
 * or not its data can be decoded (undecodable.ts); an insert that fails throws, and the run ends: the
 * cache would lack what the server has.
 */
export class CacheUpdater {
	readonly type: ResourceType;
	readonly #cache: Cache;
	readonly #undecodable: Pick<UndecodableResources, "forget">;

	constructor(type: ResourceType, cache: Cache, undecodable: Pick<UndecodableResources, "forget">) {
		this.type = type;
		this.#cache = cache;
		this.#undecodable = undecodable;
	}

	/** The cached resource of that name, shared. */
	get(id: ID): Resource | undefined {
		return this.#cache.get(this.type, id)?.resource;
	}

	/** All cached resources, shared, as they are at the time of the call. */
	*all(): Generator<Resource> {
		for (const { resource } of this.#cache.iterate(this.type)) {
			yield resource;
		}
	}

	/** Puts a resource in the place of an earlier one, if there is one. */
	upsert(resource: Resource | undefined): Change {
		const current = whole(this.type, resource);
		const previous = this.get(current.id);
		this.#undecodable.forget(this.type, current.id);
		this.#cache.insert(current);
		return previous === undefined
			? { kind: "created", current }
			: { kind: "updated", previous, current };
	}

	/** Removes a resource. What is not cached is reported as it was sent. */
	delete(resource: Resource | undefined): Change {
		const last = whole(this.type, resource);
		this.#undecodable.forget(this.type, last.id);
		return { kind: "deleted", previous: this.#cache.delete(last) ?? last };
	}

	/**
	 * Makes the cache hold exactly the snapshot, given by name: what differs is put in, what the
	 * snapshot lacks is removed. Answers the changes; what is the same is none.
	 */
	replace(snapshot: ReadonlyMap<string, Resource>): Change[] {
		const changes: Change[] = [];
		for (const resource of this.all()) {
			if (resource.id !== undefined && !snapshot.has(nameKey(resource.id))) {
				changes.push(this.delete(resource));
			}
		}
		for (const resource of snapshot.values()) {
			const cached = resource.id && this.get(resource.id);
			if (cached?.version !== resource.version || cached.id?.uid !== resource.id?.uid) {
				changes.push(this.upsert(resource));
			}
		}
		return changes;
	}
}

/** A resource with an ID. */
export type WholeResource = Resource & { readonly id: ID };

/** @throws Error where a watch event lacks the resource, or the resource its ID. */
export function whole(type: ResourceType, resource: Resource | undefined): WholeResource {
	if (!hasId(resource)) {
		throw new Error(`watch of ${type.key} sent an event without a resource or without its ID`);
	}
	return resource;
}

function hasId(resource: Resource | undefined): resource is WholeResource {
	return resource?.id !== undefined;
}
