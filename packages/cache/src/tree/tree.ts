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
 * - Looking up a key takes one comparison or one hash lookup per segment; no string is built.
 * - Listing a prefix looks it up and then walks the subtree in order.
 * - Listing parents collects the buckets on the way down.
 * - Replacing or removing an entry needs no lookup, since it knows its nodes.
 *
 * Nodes exist only on paths to entries.
 */
export class Tree {
	readonly root = new Node(undefined, "");
	readonly snapshots = new Snapshots();
	readonly #byName: boolean;
	#size = 0;

	/** `buckets`: whether the entries of one key are distinguished by name or by their whole ID. */
	constructor(buckets: "by-name" | "by-id") {
		this.#byName = buckets === "by-name";
	}

	/** The number of entries; an entry counts once per key. */
	get size(): number {
		return this.#size;
	}

	/** The node of a key; `undefined` if it is not a prefix of any entry's key. */
	find(key: Key): Node | undefined {
		let node: Node | undefined = this.root;
		for (let i = 0; i < key.length && node !== undefined; i++) {
			// `i` is less than the length.
			node = findChild(node, key[i]!);
		}
		return node;
	}

	/** The node of a key, created if it is missing. The caller must add an entry to it then. */
	ensure(key: Key): Node {
		let node = this.root;
		for (let i = 0; i < key.length; i++) {
			// `i` is less than the length.
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

	/** Adds an entry to a node that has no version of it. */
	add(node: Node, entry: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		if (this.#byName) {
			addByName(node, entry);
		} else {
			addById(node, entry);
		}
		this.#size++;
	}

	/** Replaces a version, which the node must have, by another. */
	replace(node: Node, entry: Entry, by: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		replaceEntry(node, entry, by);
	}

	/** Removes an entry from a node that has it, and nodes that are empty then. */
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
