import { entryBefore, sortEntries, sortFew } from "./entry-order.ts";
import { NameMap } from "./name-map.ts";
import { Entry, type Node } from "./node.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";

/** The maximum length of an array, in which entries are found by linear search. */
const few = 128;

/** Many entries of one key: unordered until they are first read in order of their IDs. */
export class EntrySet {
	#unordered: Set<Entry> | undefined;
	#ordered: SortedList<Entry> | undefined;

	constructor(entries: readonly Entry[]) {
		this.#unordered = new Set(entries);
	}

	get size(): number {
		return this.#unordered?.size ?? this.#ordered?.size ?? 0;
	}

	add(entry: Entry): void {
		this.#unordered?.add(entry);
		this.#ordered?.add(entry);
	}

	remove(entry: Entry): void {
		this.#unordered?.delete(entry);
		this.#ordered?.remove(entry);
	}

	replace(entry: Entry, by: Entry): void {
		if (this.#unordered?.delete(entry)) {
			this.#unordered.add(by);
		}
		this.#ordered?.replace(entry, by);
	}

	/** In no particular order. */
	values(): Iterable<Entry> {
		return this.#unordered ?? this.#ordered?.chunks.flat() ?? [];
	}

	/** The entries in order, if they have been read in order before. */
	get ordered(): Chunks<Entry> | undefined {
		return this.#ordered?.chunks;
	}

	inOrder(): SortedList<Entry> {
		this.#ordered ??= new SortedList(entryBefore, sortEntries(this.#unordered ?? []));
		this.#unordered = undefined;
		return this.#ordered;
	}
}

/** Adds an entry, which must not be present, to a bucket that is ordered by ID. */
export function addById(node: Node, entry: Entry): void {
	const { bucket } = node;
	if (bucket === undefined) {
		node.bucket = entry;
	} else if (bucket instanceof Entry) {
		node.bucket = [bucket, entry];
		node.order = entryBefore(bucket, entry) ? "as they came" : "none";
	} else if (!Array.isArray(bucket)) {
		bucket.add(entry);
	} else if (bucket.length === few) {
		node.bucket = new EntrySet([...bucket, entry]);
	} else {
		const last = bucket.at(-1);
		bucket.push(entry);
		if (node.order === "kept") {
			sinkLast(bucket);
		} else if (node.order === "as they came" && last !== undefined && !entryBefore(last, entry)) {
			node.order = "none";
		}
	}
}

/** Moves the last of otherwise sorted entries to its position. */
function sinkLast(entries: Entry[]): void {
	for (let i = entries.length - 1; i > 0; i--) {
		// Both exist.
		const entry = entries[i]!;
		const other = entries[i - 1]!;
		if (entryBefore(other, entry)) {
			return;
		}
		entries[i - 1] = entry;
		entries[i] = other;
	}
}

/** Adds an entry, whose name must not be present, to a bucket that is looked up by name. */
export function addByName(node: Node, entry: Entry): void {
	if (node.bucket instanceof NameMap) {
		node.bucket.add(entry);
	} else {
		node.bucket = new NameMap(node, entry);
	}
}

/** Replaces a version of a resource, which must be present, by another. */
export function replaceEntry(node: Node, entry: Entry, by: Entry): void {
	const { bucket } = node;
	if (Array.isArray(bucket)) {
		bucket[bucket.indexOf(entry)] = by;
	} else if (bucket instanceof NameMap || bucket instanceof EntrySet) {
		bucket.replace(entry, by);
	} else {
		node.bucket = by;
	}
}

/** Removes an entry, which must be present. */
export function removeEntry(node: Node, entry: Entry): void {
	const { bucket } = node;
	if (bucket === undefined || bucket instanceof Entry) {
		node.bucket = undefined;
	} else if (Array.isArray(bucket)) {
		bucket.splice(bucket.indexOf(entry), 1);
		if (bucket.length === 1) {
			node.bucket = bucket[0];
		}
	} else {
		bucket.remove(entry);
		if (bucket.size === 0) {
			node.bucket = undefined;
		}
	}
}

/** The entries in order, valid until the next change. */
export function entriesInOrder(node: Node): Chunks<Entry> {
	const { bucket } = node;
	if (bucket === undefined) {
		return [];
	}
	if (bucket instanceof Entry) {
		return [[bucket]];
	}
	return Array.isArray(bucket) ? [sorted(node, bucket)] : bucket.inOrder().chunks;
}

/** The entries in order, in a new array. */
export function listEntries(node: Node): Entry[] {
	const { bucket } = node;
	if (bucket === undefined || bucket instanceof Entry) {
		return bucket === undefined ? [] : [bucket];
	}
	if (Array.isArray(bucket)) {
		return sorted(node, bucket).slice();
	}
	const [first = [], ...more] = bucket.inOrder().chunks;
	return first.concat(...more);
}

/** Appends the entries in order. */
export function appendEntries(node: Node, entries: Entry[]): void {
	const { bucket } = node;
	if (bucket === undefined) {
		return;
	}
	if (bucket instanceof Entry) {
		entries.push(bucket);
		return;
	}
	if (Array.isArray(bucket)) {
		for (const entry of sorted(node, bucket)) {
			entries.push(entry);
		}
		return;
	}
	for (const chunk of bucket.inOrder().chunks) {
		for (const entry of chunk) {
			entries.push(entry);
		}
	}
}

/** Like `entriesInOrder`, but never changes. */
export function shareEntries(node: Node): Chunks<Entry> {
	const { bucket } = node;
	if (Array.isArray(bucket)) {
		const shared = sorted(node, bucket);
		node.bucket = shared.slice();
		return [shared];
	}
	return bucket instanceof NameMap || bucket instanceof EntrySet
		? bucket.inOrder().share()
		: entriesInOrder(node);
}

/** The first entry; `undefined` if the bucket is empty. */
export function firstOf(node: Node): Entry | undefined {
	const { bucket } = node;
	if (bucket === undefined || bucket instanceof Entry) {
		return bucket;
	}
	return Array.isArray(bucket) ? sorted(node, bucket)[0] : bucket.inOrder().first;
}

/** The node's own array, sorted from now on. */
function sorted(node: Node, entries: Entry[]): readonly Entry[] {
	if (node.order === "none") {
		sortFew(entries);
	}
	node.order = "kept";
	return entries;
}
