import type { Key } from "../key.ts";
import { addById, addByName, removeEntry, replaceEntry } from "./bucket.ts";
import { addChild, findChild, removeChild } from "./children.ts";
import { type Entry, Node } from "./node.ts";
import { Snapshots } from "./snapshot.ts";

/**
 * Entries by key: a tree with a level for each segment.
 *
 * ```
 *   by label          root                                by ID          root
 *                      │ demo                                              │ default
 *                     node                                                node
 *                      │ Label                                             │ default
 *                     node                                                node  (a tenancy)
 *                      │ default                                           │
 *                     node                                       bucket: by name
 *          bluenote  ╱    ╲  verve                             miles ╱  │ ╲ …
 *               node        node                                entry  entry entry
 *                │            │                                   ▲      ▲
 *         bucket: a few  bucket: one                              │      │
 *         [entry, entry]    entry ────────────────────────────────┴──────┘  (the same objects)
 * ```
 *
 * To look up a key: one comparison or one hash look-up a segment; no string is built. To list what
 * starts with a key: the same, then walk the subtree in order. To list its parents: collect the buckets
 * on the way down. To replace or remove an entry: it knows its nodes, so that nothing is looked up.
 * Nodes exist only on the way to entries.
 */
export class Tree {
	readonly root = new Node(undefined, "");
	readonly snapshots = new Snapshots();
	readonly #byName: boolean;
	#size = 0;

	/** `buckets`: whether the entries of one key are told apart by name alone or by their whole ID. */
	constructor(buckets: "by-name" | "by-id") {
		this.#byName = buckets === "by-name";
	}

	/** How many entries there are, each counted once a key. */
	get size(): number {
		return this.#size;
	}

	/** The node of a key, or `undefined` where no entry's key starts so. */
	find(key: Key): Node | undefined {
		let node: Node | undefined = this.root;
		for (let i = 0; i < key.length && node !== undefined; i++) {
			// `i` is below the length.
			node = findChild(node, key[i]!);
		}
		return node;
	}

	/** The node of a key, made where it is missing. Whoever makes it gives it an entry. */
	ensure(key: Key): Node {
		let node = this.root;
		for (let i = 0; i < key.length; i++) {
			// `i` is below the length.
			const segment = key[i]!;
			node = findChild(node, segment) ?? this.#makeChild(node, segment);
		}
		return node;
	}

	#makeChild(parent: Node, segment: string): Node {
		this.snapshots.latest?.keepChildren(parent);
		const child = new Node(parent, segment);
		addChild(parent, child);
		return child;
	}

	/** Puts an entry at a node that has no version of it. */
	add(node: Node, entry: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		if (this.#byName) {
			addByName(node, entry);
		} else {
			addById(node, entry);
		}
		this.#size++;
	}

	/** Puts a version in the place of another, which the node has. */
	replace(node: Node, entry: Entry, by: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		replaceEntry(node, entry, by);
	}

	/** Takes an entry from a node that has it, and the nodes that are of no use then. */
	remove(node: Node, entry: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		removeEntry(node, entry);
		this.#size--;
		let at = node;
		while (at.bucket === undefined && at.children === undefined && at.parent !== undefined) {
			this.snapshots.latest?.keepChildren(at.parent);
			removeChild(at.parent, at);
			at = at.parent;
		}
	}
}
