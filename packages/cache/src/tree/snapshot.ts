import { entriesInOrder, shareEntries } from "./bucket.ts";
import { childrenInOrder, shareChildren } from "./children.ts";
import { type Entry, isWithin, type Node, rootOf } from "./node.ts";
import type { Chunks } from "./sorted-list.ts";

/**
 * A tree as it was at one time: whatever has changed since is kept here, or in a later snapshot, as it
 * was before; the rest is in the tree.
 *
 * ```
 *   iterator ──▶ snapshot ──next──▶ snapshot ◀╌╌weak╌╌ tree
 *                    ▲                  ▲
 *                 changes            changes
 *                 before             since
 * ```
 *
 * A writer keeps what it is about to change in the latest snapshot alone, each part once: what an older
 * one lacks is found along `next`. Only iterators hold snapshots, so that what an abandoned one keeps
 * goes with it. To keep a part is free but for sorting what nobody has wanted in order before (see
 * `SortedList.share`); the first change of it after that copies some hundred pointers.
 */
export class Snapshot {
	/** The nodes whose subtrees are read; nothing else is kept. */
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

	/** Whether the tree has not changed since, as far as the snapshot is concerned. */
	get isCurrent(): boolean {
		return this.#children.size === 0 && this.#entries.size === 0;
	}

	/** Adds a subtree; many become the whole tree, so that writers need not look far. */
	cover(scope: Node): void {
		this.#scopes.add(scope);
		if (this.#scopes.size > mostScopes) {
			this.#scopes.clear();
			this.#scopes.add(rootOf(scope));
		}
	}

	/** To be called before the node's children change. */
	keepChildren(node: Node): void {
		if (!this.#children.has(node) && this.#covers(node)) {
			this.#children.set(node, shareChildren(node));
		}
	}

	/** To be called before the node's entries change. */
	keepEntries(node: Node): void {
		if (!this.#entries.has(node) && this.#covers(node)) {
			this.#entries.set(node, shareEntries(node));
		}
	}

	/** The node's children as they were. */
	childrenOf(node: Node): Chunks<Node> {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#children.get(node);
			if (kept !== undefined) {
				return kept;
			}
		}
		return childrenInOrder(node);
	}

	/** The node's entries as they were. */
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

/** How many subtrees a snapshot tells apart. */
const mostScopes = 8;

/** The open snapshots of one tree. */
export class Snapshots {
	#latest: WeakRef<Snapshot> | undefined;
	#open = 0;

	/** What writers must keep things in, or `undefined` where nobody reads. */
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

	/** The tree below `scope` as it is now, until `close`. */
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

	/** Ends one `open`. */
	close(): void {
		this.#open--;
		if (this.#open === 0) {
			this.#latest = undefined;
		}
	}
}
