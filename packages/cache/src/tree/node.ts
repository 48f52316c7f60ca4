import type { Key } from "../key.ts";
import type { Bucket } from "./bucket.ts";
import type { Children } from "./children.ts";

/** A key in a tree of keys: the segments from the root to the node. */
export class Node {
	readonly parent: Node | undefined;
	/** The last segment of the key; empty for the root. */
	readonly segment: string;
	/** The keys that are longer by a segment. */
	children: Children = undefined;
	/** The entries of this very key. */
	bucket: Bucket = undefined;
	/** Whether a bucket that is an array is in order. */
	isSorted = false;

	constructor(parent: Node | undefined, segment: string) {
		this.parent = parent;
		this.segment = segment;
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
