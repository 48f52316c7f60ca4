import { entriesInOrder, shareEntries } from "./bucket.ts";
import { childrenInOrder, shareChildren } from "./children.ts";
import { type Entry, isWithin, type Node, rootOf } from "./node.ts";
import type { Chunks } from "./sorted-list.ts";

/**
 * The state of a tree at one time. For parts that have changed since, the earlier state is stored here or
 * in a later snapshot; all others are read from the tree.
 *
 * ```
 *   iterator ──▶ snapshot ──next──▶ snapshot ◀╌╌weak╌╌ tree
 *                    ▲                  ▲
 *                 changes            changes
 *                 before             since
 * ```
 *
 * Before it changes a part, a writer stores it in the latest snapshot only, once: older snapshots find it
 * by following `next`. Only iterators hold strong references to snapshots, so that the snapshots of an
 * abandoned iterator are garbage-collected. Storing a part is free, except for sorting a part that has not
 * been read in order before (see `SortedList.share`); the first change after that copies a few hundred
 * pointers.
 */
export class Snapshot {
	/** The nodes whose subtrees are read; nothing else is stored. */
	readonly #scopes: Set<Node>;
	readonly #children = new Map<Node, Chunks<Node>>();
	readonly #entries = new Map<Node, Chunks<Entry>>();
	#next: Snapshot | undefined;

	constructor(scope: Node, earlier?: Snapshot) {
		this.#scopes = new Set(earlier === undefined ? [] : earlier.#scopes);
		this.cover(scope);
		if (earlier !== undefined) {
			earlier.#next = this;
		}
	}

	/** Whether the parts that the snapshot covers have not changed since. */
	get isCurrent(): boolean {
		return this.#children.size === 0 && this.#entries.size === 0;
	}

	/** Adds a subtree; beyond a few, the snapshot covers the whole tree, to keep writes fast. */
	cover(scope: Node): void {
		this.#scopes.add(scope);
		if (this.#scopes.size > mostScopes) {
			this.#scopes.clear();
			this.#scopes.add(rootOf(scope));
		}
	}

	/** Must be called before the node's children change. */
	keepChildren(node: Node): void {
		if (!this.#children.has(node) && this.#covers(node)) {
			this.#children.set(node, shareChildren(node));
		}
	}

	/** Must be called before the node's entries change. */
	keepEntries(node: Node): void {
		if (!this.#entries.has(node) && this.#covers(node)) {
			this.#entries.set(node, shareEntries(node));
		}
	}

	/** The node's children at the time of the snapshot. */
	childrenOf(node: Node): Chunks<Node> {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#children.get(node);
			if (kept !== undefined) {
				return kept;
			}
		}
		return childrenInOrder(node);
	}

	/** The node's entries at the time of the snapshot. */
	entriesOf(node: Node): Chunks<Entry> {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#entries.get(node);
			if (kept !== undefined) {
				return kept;
			}
		}
		return entriesInOrder(node);
	}

	#covers(node: Node): boolean {
		for (const scope of this.#scopes) {
			if (isWithin(node, scope)) {
				return true;
			}
		}
		return false;
	}
}

/** How many subtrees a snapshot distinguishes. */
const mostScopes = 8;

/** The open snapshots of one tree. */
export class Snapshots {
	#latest: WeakRef<Snapshot> | undefined;
	#open = 0;

	/** The snapshot that writers must store parts in; `undefined` if there is no reader. */
	get latest(): Snapshot | undefined {
		if (this.#latest === undefined) {
			return undefined;
		}
		const latest = this.#latest.deref();
		if (latest === undefined) {
			this.#latest = undefined;
			this.#open = 0;
		}
		return latest;
	}

	/** Opens a snapshot of the tree below `scope`, until `close`. */
	open(scope: Node): Snapshot {
		const { latest } = this;
		this.#open++;
		if (latest?.isCurrent) {
			latest.cover(scope);
			return latest;
		}
		const snapshot = new Snapshot(scope, latest);
		this.#latest = new WeakRef(snapshot);
		return snapshot;
	}

	/** Closes one `open`. */
	close(): void {
		this.#open--;
		if (this.#open === 0) {
			this.#latest = undefined;
		}
	}
}
