import type { Entry, Version } from "./entry.ts";
import {
	childrenOf,
	entriesOf,
	isWithin,
	type Node,
	rootOf,
	shareChildren,
	shareEntries,
} from "./node.ts";
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
 * goes with it.
 */
export class Snapshot {
	/** The nodes whose subtrees are read; nothing else is kept. */
	readonly scopes: Set<Node>;
	readonly #children = new Map<Node, Chunks<Node>>();
	readonly #entries = new Map<Node, Chunks<Entry>>();
	readonly #versions = new Map<Entry, Version>();
	#next: Snapshot | undefined;

	constructor(scopes: Iterable<Node> = []) {
		this.scopes = new Set(scopes);
	}

	/** Adds a subtree; many become the whole tree, so that writers need not look far. */
	cover(scope: Node): void {
		this.scopes.add(scope);
		if (this.scopes.size > mostScopes) {
			this.scopes.clear();
			this.scopes.add(rootOf(scope));
		}
	}

	/** Whether the tree has not changed since, as far as the snapshot is concerned. */
	get isCurrent(): boolean {
		return this.#children.size + this.#entries.size + this.#versions.size === 0;
	}

	/** The snapshot that keeps what changes from now on. */
	followedBy(next: Snapshot): void {
		this.#next = next;
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

	/** To be called before the entry's resource is replaced. */
	keepVersion(entry: Entry): void {
		if (!this.#versions.has(entry)) {
			const { resource, decoded, places } = entry;
			this.#versions.set(entry, { resource, decoded, places });
		}
	}

	childrenOf(node: Node): Chunks<Node> {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#children.get(node);
			if (kept !== undefined) {
				return kept;
			}
		}
		return childrenOf(node);
	}

	entriesOf(node: Node): Chunks<Entry> {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#entries.get(node);
			if (kept !== undefined) {
				return kept;
			}
		}
		return entriesOf(node);
	}

	/** The entry as it was: itself, where it has not been replaced. */
	versionOf(entry: Entry): Version {
		for (let at: Snapshot | undefined = this; at !== undefined; at = at.#next) {
			const kept = at.#versions.get(entry);
			if (kept !== undefined) {
				return kept;
			}
		}
		return entry;
	}

	#covers(node: Node): boolean {
		for (const scope of this.scopes) {
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
		const snapshot = new Snapshot(latest?.scopes);
		snapshot.cover(scope);
		latest?.followedBy(snapshot);
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
