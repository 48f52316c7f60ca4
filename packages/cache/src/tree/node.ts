import type { Resource } from "@plinth/proto";
import {
	cachesDecodedForm,
	type Decoded,
	decodeShared,
	type ResourceType,
	sharedObjectsAreFrozen,
} from "@plinth/resource";
import type { Key } from "../key.ts";
import type { ChildMap } from "./child-map.ts";
import type { Chunks, SortedList } from "./sorted-list.ts";

/** A key in a tree of keys: the segments from the root to the node. */
export class Node {
	readonly parent: Node | undefined;
	/** The last segment of the key; empty for the root. */
	readonly segment: string;
	/** The nodes of keys that are one segment longer: none; a single one, found by comparison; or several, by hash. */
	children: undefined | Node | ChildMap<Node> = undefined;
	/** The entries of exactly this key. */
	bucket: Bucket = undefined;
	/** If the bucket is an array. */
	order: BucketOrder = "none";

	constructor(parent: Node | undefined, segment: string) {
		this.parent = parent;
		this.segment = segment;
	}
}

/**
 * The entries of one key: none; a single one; a few, in an array; many, in an `EntrySet`; or, in the
 * tree by ID, those of a tenancy, in a `NameMap`.
 *
 * Most keys have one entry or a few, and an array is a fifth of a set's size. Its entries are in the
 * order in which they came until they are first read by ID, and sorted from then on: comparing an entry with all others
 * costs more than adding it.
 */
export type Bucket = undefined | Entry | Entry[] | ManyEntries;

/**
 * Whether the entries of an array are in the order of their IDs: no; yes, but only since they came in that order, as
 * those of a snapshot do; or yes, and each further one is put in its position, since they have been read by ID.
 */
export type BucketOrder = "none" | "as they came" | "kept";

/** The entries of a node that has many. */
interface ManyEntries {
	readonly size: number;
	readonly ordered: Chunks<Entry> | undefined;
	add(entry: Entry): void;
	remove(entry: Entry): void;
	replace(entry: Entry, by: Entry): void;
	values(): Iterable<Entry>;
	inOrder(): SortedList<Entry>;
}

/** The node's key. */
export function keyOf(node: Node): Key {
	return node.parent === undefined ? [] : [...keyOf(node.parent), node.segment];
}

/** Whether the node's key equals the given one; compares strings without hashing. */
export function isAt(node: Node, key: Key): boolean {
	let at = node;
	for (let i = key.length - 1; i >= 0; i--) {
		if (at.parent === undefined || at.segment !== key[i]) {
			return false;
		}
		at = at.parent;
	}
	return at.parent === undefined;
}

/** Whether the node is the given one or below it. */
export function isWithin(node: Node, top: Node): boolean {
	for (let at: Node | undefined = node; at !== undefined; at = at.parent) {
		if (at === top) {
			return true;
		}
	}
	return false;
}

/** The root of the node's tree. */
export function rootOf(node: Node): Node {
	return node.parent === undefined ? node : rootOf(node.parent);
}

/** The nodes of an entry in one index: none, one, or several, ordered by key. */
export type Place = Node | readonly Node[] | undefined;

/** Per index, in the order in which the type's indexes were declared. */
export type Places = readonly Place[];

const nowhere: Places = [];

/**
 * One version of a resource in a cache, which is also the item that readers receive: an item does not
 * change when the cache does, and indexes point directly to items. The bookkeeping of the cache in an entry
 * is private, so that readers can neither see nor change it.
 *
 * The data is decoded on first access, by an indexer or a reader. Decoded data that is many times larger
 * than its encoded bytes may be dropped and decoded again on the next access.
 */
export class Entry implements Decoded {
	readonly resource: Resource;
	readonly #type: ResourceType;
	/** The name of the ID: entries are compared by it, and reading it from the resource is a cache miss. */
	readonly #name: string;
	#data: Decoded["data"] | undefined = undefined;
	#home: Node | undefined = undefined;
	#places: Places = nowhere;

	constructor(type: ResourceType, resource: Resource) {
		this.resource = resource;
		this.#type = type;
		this.#name = resource.id?.name ?? "";
		if (sharedObjectsAreFrozen) {
			Object.freeze(this);
		}
	}

	/** @throws DecodeError if the data can't be decoded. */
	get data(): Decoded["data"] {
		return this.#data ?? this.#decode();
	}

	#decode(): Decoded["data"] {
		const { data } = decodeShared(this.#type, this.resource);
		if (cachesDecodedForm(this.resource)) {
			this.#data = data;
		}
		return data;
	}

	/** Its name. */
	static nameOf(entry: Entry): string {
		return entry.#name;
	}

	/** Sets the positions of the entry, once. */
	static place(entry: Entry, home: Node, places: Places): void {
		entry.#home = home;
		entry.#places = places;
	}

	/** The node of its tenancy in the tree by ID, if it is in a cache. */
	static homeOf(entry: Entry): Node | undefined {
		return entry.#home;
	}

	/** Its nodes in the trees of the indexes. */
	static placesOf(entry: Entry): Places {
		return entry.#places;
	}
}

export const { place, nameOf, homeOf, placesOf } = Entry;
