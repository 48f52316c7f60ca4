import type { ID, Resource } from "@plinth/proto";
import { familyKey, nameKey, sameName } from "@plinth/resource";
import { OrderedMap } from "./ordered-map.ts";
import { orderKey } from "./resource-key.ts";

/**
 * Finds resources by the incarnation that owns them: the name and uid of the owner.
 *
 * ```
 *   owner ──hash──▶ [ resource, resource, … ]      at most `few`: an array in order
 *   owner ──hash──▶ key ──in order──▶ resource     more: OrderedMap
 * ```
 *
 * Both are in order at each moment, so that a list is a copy. Most owners own a few resources, which an array holds
 * without keys; in an array of many, each insertion would move half of them. An owner that has owned many keeps
 * the map until it owns nothing.
 */
export class OwnerIndex {
	readonly #owned = new Map<string, Resource[] | OrderedMap<Resource>>();

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

	/** The resources that the incarnation owns, ordered by family, partition, namespace and name. */
	list(owner: ID): readonly Resource[] {
		const owned = this.#owned.get(ownerKey(owner) ?? "");
		return owned === undefined ? [] : Array.isArray(owned) ? owned.slice() : owned.values();
	}

	#add(owner: string, resource: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (owned === undefined) {
			this.#owned.set(owner, [resource]);
		} else if (!Array.isArray(owned)) {
			owned.set(ownedKey(id), resource);
		} else if (owned.length < few) {
			owned.splice(firstNotBefore(owned, id), 0, resource);
		} else {
			this.#owned.set(owner, mapOf([...owned, resource]));
		}
	}

	/** Replaces a version of a resource by the next one. */
	#replace(owner: string, previous: Resource, resource: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (Array.isArray(owned)) {
			// Found by identity: comparing IDs would read all that are compared.
			owned[owned.indexOf(previous)] = resource;
		} else {
			owned?.set(ownedKey(id), resource);
		}
	}

	#remove(owner: string, previous: Resource, id: ID): void {
		const owned = this.#owned.get(owner);
		if (Array.isArray(owned)) {
			owned.splice(owned.indexOf(previous), 1);
		} else {
			owned?.delete(ownedKey(id));
		}
		if ((Array.isArray(owned) ? owned.length : owned?.size) === 0) {
			this.#owned.delete(owner);
		}
	}
}

/** The maximum of resources in an array. */
const few = 64;

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
function ownedKey(id: ID): string {
	return `${familyOf(id)}\0${orderKey(id)}`;
}

function familyOf({ type }: ID): string {
	return type === undefined ? "" : familyKey(type);
}

/** The index of the first resource whose ID is not before the given one. */
function firstNotBefore(owned: readonly Resource[], id: ID): number {
	let low = 0;
	let high = owned.length;
	// The last one is compared first: a storage loads resources in order.
	for (let middle = high - 1; low < high; middle = (low + high) >>> 1) {
		const other = owned[middle]?.id;
		if (other !== undefined && isBefore(other, id)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/** Whether the `ownedKey` of `a` is below that of `b`; builds no key, except between families. */
function isBefore(a: ID, b: ID): boolean {
	if (a.type?.kind !== b.type?.kind || a.type?.group !== b.type?.group) {
		return familyOf(a) < familyOf(b);
	}
	const [partitionA, partitionB] = [a.tenancy?.partition ?? "", b.tenancy?.partition ?? ""];
	if (partitionA !== partitionB) {
		return partitionA < partitionB;
	}
	const [namespaceA, namespaceB] = [a.tenancy?.namespace ?? "", b.tenancy?.namespace ?? ""];
	return namespaceA === namespaceB ? a.name < b.name : namespaceA < namespaceB;
}
