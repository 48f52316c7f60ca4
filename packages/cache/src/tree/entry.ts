import type { Resource } from "@plinth/proto";
import { type Decoded, DecodeError, decodeShared, type ResourceType } from "@plinth/resource";
import type { Node } from "./node.ts";

/** Where one index has an entry: nowhere, at one node, or at several, by key. */
export type Place = Node | readonly Node[] | undefined;

/** What changes when a resource is replaced. */
export interface Version {
	readonly resource: Resource;
	readonly decoded: Decoded | undefined;
	/** By index, in the order in which the type's indexes were declared. */
	readonly places: readonly Place[];
}

/**
 * One resource of a cache. All indexes hold the entry itself, so that a replacement with the same keys
 * touches no index at all.
 */
export class Entry implements Version {
	/** The node of its tenancy, in the tree by ID. */
	readonly parent: Node;
	/** Its name. */
	readonly segment: string;
	resource: Resource;
	/** Once somebody has wanted it. */
	decoded: Decoded | undefined;
	places: readonly Place[];

	constructor(parent: Node, segment: string, version: Version) {
		this.parent = parent;
		this.segment = segment;
		this.resource = version.resource;
		this.decoded = version.decoded;
		this.places = version.places;
	}
}

/** A resource whose data can't be decoded. */
export class Undecodable implements Decoded {
	readonly resource: Resource;
	readonly error: DecodeError;

	constructor(resource: Resource, error: DecodeError) {
		this.resource = resource;
		this.error = error;
	}

	/** @throws DecodeError always. */
	get data(): never {
		throw this.error;
	}
}

/** The resource as an item. Where it can't be decoded, reading the item's data says so. */
export function decodeItem(type: ResourceType, resource: Resource): Decoded {
	try {
		return decodeShared(type, resource);
	} catch (error) {
		if (error instanceof DecodeError) {
			return new Undecodable(resource, error);
		}
		throw error;
	}
}

/** The entry as an item, decoded when first wanted. */
export function itemOf(type: ResourceType, entry: Entry): Decoded {
	return entry.decoded ?? decodeEntry(type, entry);
}

function decodeEntry(type: ResourceType, entry: Entry): Decoded {
	entry.decoded = decodeItem(type, entry.resource);
	return entry.decoded;
}

/** The order of entries: by tenancy, then by name. */
export function entryBefore(a: Entry, b: Entry): boolean {
	return a.parent === b.parent ? a.segment < b.segment : comparePaths(a.parent, b.parent) < 0;
}

/** The order of two different nodes of one tree that are equally deep. */
function comparePaths(a: Node, b: Node): number {
	if (a.parent !== undefined && b.parent !== undefined && a.parent !== b.parent) {
		return comparePaths(a.parent, b.parent);
	}
	return a.segment < b.segment ? -1 : 1;
}

/** A resource that indexers look at: decoded when the first of them wants its data. */
export class Candidate implements Decoded {
	readonly resource: Resource;
	readonly #type: ResourceType;
	decoded: Decoded | undefined;

	constructor(type: ResourceType, resource: Resource) {
		this.resource = resource;
		this.#type = type;
	}

	/** @throws DecodeError where it can't be decoded. */
	get data(): Decoded["data"] {
		this.decoded ??= decodeItem(this.#type, this.resource);
		return this.decoded.data;
	}
}
