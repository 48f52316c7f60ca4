import type { Resource } from "@plinth/proto";
import {
	type Decoded,
	decodeShared,
	freezesShared,
	keepsDecoded,
	type ResourceType,
} from "@plinth/resource";
import type { Node } from "./node.ts";

/** Where one index has an entry: nowhere, at one node, or at several, by key. */
export type Place = Node | readonly Node[] | undefined;

/** By index, in the order in which the type's indexes were declared. */
export type Places = readonly Place[];

const nowhere: Places = [];

/**
 * One version of a resource in a cache, and the very item that readers get: what a reader has does not
 * change when the cache does, and nothing stands between an index and its items. What the cache itself
 * notes on an entry is private, so that readers neither see nor change it.
 *
 * The data is decoded when first read: by an indexer, or by a reader, or never. Data that takes many times its
 * encoded bytes may be decoded again when it is next read.
 */
export class Entry implements Decoded {
	readonly resource: Resource;
	readonly #type: ResourceType;
	/** That of the ID: entries are compared by it, and the resource is far away in memory. */
	readonly #name: string;
	#data: Decoded["data"] | undefined = undefined;
	#home: Node | undefined = undefined;
	#places: Places = nowhere;

	constructor(type: ResourceType, resource: Resource) {
		this.resource = resource;
		this.#type = type;
		this.#name = resource.id?.name ?? "";
		if (freezesShared) {
			Object.freeze(this);
		}
	}

	/** @throws DecodeError where the data can't be decoded. */
	get data(): Decoded["data"] {
		return this.#data ?? this.#decode();
	}

	#decode(): Decoded["data"] {
		const { data } = decodeShared(this.#type, this.resource);
		if (keepsDecoded(this.resource)) {
			this.#data = data;
		}
		return data;
	}

	/** Its name. */
	static nameOf(entry: Entry): string {
		return entry.#name;
	}

	/** Notes where the entry is, once. */
	static place(entry: Entry, home: Node, places: Places): void {
		entry.#home = home;
		entry.#places = places;
	}

	/** The node of its tenancy in the tree by ID, once it is in a cache. */
	static homeOf(entry: Entry): Node | undefined {
		return entry.#home;
	}

	/** Its nodes in the trees of the indexes. */
	static placesOf(entry: Entry): Places {
		return entry.#places;
	}
}

export const { place, nameOf, homeOf, placesOf } = Entry;
