import type { Key } from "../key.ts";
import { Entry, entryBefore } from "./entry.ts";
import { SegmentMap } from "./segment-map.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";

/**
 * The entries of one key: none; a single one; several, by ID; or, in the tree by ID, those of a
 * tenancy, by name.
 */
export type Bucket = undefined | Entry | SortedList<Entry> | SegmentMap<Entry>;

/** A key in a tree of keys: the segments from the root to the node. */
export class Node {
	readonly parent: Node | undefined;
	/** The last segment of the key; empty for the root. */
	readonly segment: string;
	children: SegmentMap<Node> | undefined = undefined;
	bucket: Bucket = undefined;

	constructor(parent: Node | undefined, segment: string) {
		this.parent = parent;
		this.segment = segment;
	}

	get isEmpty(): boolean {
		return this.bucket === undefined && this.children === undefined;
	}
}

/** The node's key. */
export function keyOf(node: Node): Key {
	return node.parent === undefined ? [] : [...keyOf(node.parent), node.segment];
}

/** Whether the node's key is the given one: compares strings and hashes none. */
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

/** The children, by segment, to be read before the next change. */
export function childrenOf(node: Node): Chunks<Node> {
	return node.children?.inOrder().chunks ?? [];
}

/** The entries of the node's key, in order, to be read before the next change. */
export function entriesOf(node: Node): Chunks<Entry> {
	const { bucket } = node;
	if (bucket === undefined) {
		return [];
	}
	if (bucket instanceof Entry) {
		return [[bucket]];
	}
	return bucket instanceof SortedList ? bucket.chunks : bucket.inOrder().chunks;
}

/** As `childrenOf`, to be kept. */
export function shareChildren(node: Node): Chunks<Node> {
	return node.children?.inOrder().share() ?? [];
}

/** As `entriesOf`, to be kept. */
export function shareEntries(node: Node): Chunks<Entry> {
	const { bucket } = node;
	if (bucket instanceof SortedList) {
		return bucket.share();
	}
	return bucket instanceof SegmentMap ? bucket.inOrder().share() : entriesOf(node);
}

/** The first entry of the node's key. */
export function firstOf(node: Node): Entry | undefined {
	const { bucket } = node;
	if (bucket === undefined || bucket instanceof Entry) {
		return bucket;
	}
	return bucket instanceof SortedList ? bucket.first : bucket.inOrder().first;
}

/** Puts an entry, which the bucket must not have, into a bucket that is ordered by ID. */
export function addById(node: Node, entry: Entry): void {
	const { bucket } = node;
	if (bucket === undefined) {
		node.bucket = entry;
	} else if (bucket instanceof Entry) {
		node.bucket = new SortedList(
			entryBefore,
			entryBefore(bucket, entry) ? [bucket, entry] : [entry, bucket],
		);
	} else {
		bucket.add(entry);
	}
}

/** Puts an entry, which the bucket must not have, into a bucket that is looked up by name. */
export function addByName(node: Node, entry: Entry): void {
	if (node.bucket instanceof SegmentMap) {
		node.bucket.add(entry);
	} else {
		const bucket = new SegmentMap<Entry>();
		bucket.add(entry);
		node.bucket = bucket;
	}
}

/** Takes an entry out, which the bucket must have. */
export function removeEntry(node: Node, entry: Entry): void {
	const { bucket } = node;
	if (bucket === undefined || bucket instanceof Entry) {
		node.bucket = undefined;
		return;
	}
	bucket.remove(entry);
	if (bucket.size === 0) {
		node.bucket = undefined;
	}
}
