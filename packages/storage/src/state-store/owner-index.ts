import type { ID, Resource } from "@plinth/proto";
import { familyKey, nameKey, type ResourceName, sameName } from "@plinth/resource";
import { OrderedMap } from "./ordered-map.ts";
import { orderKey, storedPartition } from "./resource-key.ts";

/** A part of the resources that an incarnation owns. */
export interface OwnedPage {
	/** Only those after this name, in their order. It need not exist. */
	readonly after?: ResourceName | undefined;
	/** The maximum number, at least 1. */
	readonly limit?: number | undefined;
}

/**
 * Finds resources by the incarnation that owns them: the name and uid of the owner.
 *
 * ```
 *   owner ──hash──▶ [ resource, resource, … ]      at most `few`: an array, in order once it was listed
 *   owner ──hash──▶ key ──in order──▶ resource     more: OrderedMap
 * ```
 *
 * Most owners own a few resources, which an array holds without keys. It is sorted when it is listed, and the next list
 * is a copy: while a storage is loaded, an addition compares nothing, since the resources that it would be compared with
 * are all over the memory. An array of many would be searched from end to end for each change. An owner that has owned
 * many keeps the map until it owns nothing.
 */
export class OwnerIndex {
	readonly #owned = new Map<string, Resource[] | Unsorted | OrderedMap<Resource>>();

	/** Updates the index for a change of the resource stored under one name. */
	update(previous: Resource | undefined, resource: Resource | undefined): void {
		const before = ownerKey(previous?.owner);
		const after = sameOwner(previous?.owner, resource?.owner) ? before : ownerKey(resource?.owner);
		if (before !== undefined && previous?.id !== undefined && before === after && resource) {
			this.#replace(before, previous, resource, previous.id);
			return;
		}
		if (before !== undefined && previous?.id !== undefined) {
			this.#remove(before, previous, previous.id);
		}
		if (after !== undefined && resource?.id !== undefined) {
			this.#add(after, resource, resource.id);
		}
	}

	/**
	 * The resources that the incarnation owns, ordered by family, partition, namespace and name: all of them, or at
	 * most `limit` of those after a name.
	 */
	list(
		owner: ID,
		{ after, limit = Number.POSITIVE_INFINITY }: OwnedPage = {},
	): readonly Resource[] {
		const key = ownerKey(owner) ?? "";
		const owned = this.#owned.get(key);
		if (owned instanceof OrderedMap) {
			return after === undefined && limit >= owned.size
				? owned.values()
				: owned.valuesAfter(after === undefined ? "" : ownedKey(after), limit);
		}
		const few = this.#listFew(key, owned);
		const rest =
			after === undefined ? few : few.filter(({ id }) => id !== undefined && isBefore(after, id));
		return rest.slice(0, limit);
	}

	/** The resources of an array, in order. */
	#listFew(key: string, owned: Resource[] | Unsorted | undefined): readonly Resource[] {
		if (owned instanceof Unsorted) {
			const sorted = owned.resources.sort(inOrder);
			this.#owned.set(key, sorted);
			return sorted;
		}
		return owned ?? [];
	}

	#add(owner: string, resource: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (owned === undefined) {
			this.#owned.set(owner, [resource]);
		} else if (owned instanceof OrderedMap) {
			owned.set(ownedKey(id), resource);
		} else {
			const resources = arrayOf(owned);
			resources.push(resource);
			if (resources.length > few) {
				this.#owned.set(owner, mapOf(resources));
			} else if (owned === resources) {
				this.#owned.set(owner, new Unsorted(resources));
			}
		}
	}

	/** Replaces a version of a resource by the next one. */
	#replace(owner: string, previous: Resource, resource: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (owned instanceof OrderedMap) {
			owned.set(ownedKey(id), resource);
		} else if (owned !== undefined) {
			const resources = arrayOf(owned);
			// Found by identity: comparing IDs would read all that are compared.
			resources[resources.indexOf(previous)] = resource;
		}
	}

	#remove(owner: string, previous: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (owned === undefined) {
			return;
		}
		let left: number;
		if (owned instanceof OrderedMap) {
			owned.delete(ownedKey(id));
			left = owned.size;
		} else {
			const resources = arrayOf(owned);
			resources.splice(resources.indexOf(previous), 1);
			left = resources.length;
		}
		if (left === 0) {
			this.#owned.delete(owner);
		}
	}
}

/** The maximum of resources in an array. */
const few = 64;

/** An array that has to be sorted before it is listed. */
class Unsorted {
	readonly resources: Resource[];

	constructor(resources: Resource[]) {
		this.resources = resources;
	}
}

function arrayOf(owned: Resource[] | Unsorted): Resource[] {
	return owned instanceof Unsorted ? owned.resources : owned;
}

function mapOf(owned: readonly Resource[]): OrderedMap<Resource> {
	const map = new OrderedMap<Resource>();
	for (const resource of owned) {
		if (resource.id !== undefined) {
			map.set(ownedKey(resource.id), resource);
		}
	}
	return map;
}

/** `undefined` if the owner has no uid: ownership is by incarnation, not by name. */
function ownerKey(owner: ID | undefined): string | undefined {
	return owner === undefined || owner.uid === "" ? undefined : `${nameKey(owner)}/${owner.uid}`;
}

function sameOwner(a: ID | undefined, b: ID | undefined): boolean {
	return a === b || (a?.uid === b?.uid && sameName(a, b));
}

/** The key of a resource among those of one owner. */
function ownedKey(id: ResourceName): string {
	return `${familyOf(id)}\0${orderKey(id)}`;
}

function familyOf({ type }: ResourceName): string {
	return type === undefined ? "" : familyKey(type);
}

/** The order of two resources of one owner, which is that of their `ownedKey`; builds no key, except between families. */
function inOrder({ id: a }: Resource, { id: b }: Resource): number {
	return a === undefined || b === undefined || isBefore(a, b) ? -1 : 1;
}

/** Whether the `ownedKey` of `a` is below that of `b`. */
function isBefore(a: ResourceName, b: ResourceName): boolean {
	if (a.type?.kind !== b.type?.kind || a.type?.group !== b.type?.group) {
		return familyOf(a) < familyOf(b);
	}
	const [partitionA, partitionB] = [storedPartition(a), storedPartition(b)];
	if (partitionA !== partitionB) {
		return partitionA < partitionB;
	}
	const [namespaceA, namespaceB] = [a.tenancy?.namespace ?? "", b.tenancy?.namespace ?? ""];
	return namespaceA === namespaceB ? a.name < b.name : namespaceA < namespaceB;
}
