import type { Key } from "../key.ts";
import type { Entry } from "./entry.ts";
import { addById, addByName, Node, removeEntry } from "./node.ts";
import { SegmentMap } from "./segment-map.ts";
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
 *         bucket: by ID   bucket: one                             │      │
 *         [entry, entry]    entry ────────────────────────────────┴──────┘  (the same objects)
 * ```
 *
 * To look up a key: one hash look-up a segment; no string is built. To list what starts with a key:
 * the same, then walk the subtree in order. To list its parents: collect the buckets on the way down.
 * To remove an entry: it knows its nodes, so that no key is computed or looked up. Nodes exist only
 * on the way to entries.
 */
export class Tree {
	readonly root = new Node(undefined, "");
	readonly snapshots = new Snapshots();
	readonly #add: (node: Node, entry: Entry) => void;
	#size = 0;

	/** `buckets`: whether the entries of one key are told apart by name alone or by their whole ID. */
	constructor(buckets: "by-name" | "by-id") {
		this.#add = buckets === "by-name" ? addByName : addById;
	}

	/** How many keys of entries there are. */
	get size(): number {
		return this.#size;
	}

	/** The node of a key, or `undefined` where no entry's key starts so. */
	find(key: Key): Node | undefined {
		let node: Node | undefined = this.root;
		for (let i = 0; i < key.length && node !== undefined; i++) {
			// `i` is below the length.
			node = node.children?.get(key[i]!);
		}
		return node;
	}

	/** The node of a key, made where it is missing. Whoever makes it gives it an entry. */
	ensure(key: Key): Node {
		let node = this.root;
		for (let i = 0; i < key.length; i++) {
			// `i` is below the length.
			const segment = key[i]!;
			node = node.children?.get(segment) ?? this.#addChild(node, segment);
		}
		return node;
	}

	#addChild(parent: Node, segment: string): Node {
		this.snapshots.latest?.keepChildren(parent);
		const child = new Node(parent, segment);
		parent.children ??= new SegmentMap();
		parent.children.add(child);
		return child;
	}

	/** Puts an entry at a node that does not have it. */
	add(node: Node, entry: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		this.#add(node, entry);
		this.#size++;
	}

	/** Takes an entry from a node that has it, and the nodes that are of no use then. */
	remove(node: Node, entry: Entry): void {
		this.snapshots.latest?.keepEntries(node);
		removeEntry(node, entry);
		this.#size--;
		this.#prune(node);
	}

	#prune(node: Node): void {
		let at = node;
		while (at.isEmpty && at.parent !== undefined) {
			const { parent } = at;
			this.snapshots.latest?.keepChildren(parent);
			parent.children?.remove(at);
			if (parent.children?.size === 0) {
				parent.children = undefined;
			}
			at = parent;
		}
	}
}
