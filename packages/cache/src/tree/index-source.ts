import type { Decoded } from "@plinth/resource";
import type { Source } from "../source.ts";
import { appendEntries, firstOf } from "./bucket.ts";
import { findChild } from "./children.ts";
import { type Entry, type Node, placesOf } from "./node.ts";
import { isFirstOnPath, isFirstPlace, type Scope } from "./scope.ts";
import { SnapshotIterator } from "./snapshot-iterator.ts";
import type { TypeIndex } from "./type-index.ts";
import { listScope, visitScope } from "./visit.ts";

/** A declared index, for readers. */
export class IndexSource implements Source {
	readonly #index: TypeIndex;

	constructor(index: TypeIndex) {
		this.#index = index;
	}

	get(args: readonly unknown[]): Decoded | undefined {
		const node = this.#index.tree.find(this.#index.exactQuery(args));
		return node && firstOf(node);
	}

	list(args: readonly unknown[]): Decoded[] {
		const scope = this.#index.scope(args);
		if (scope === undefined) {
			return [];
		}
		const { at, hasSeveralKeys } = this.#index;
		if (!hasSeveralKeys || isOneKey(scope)) {
			return listScope(scope);
		}
		const items: Decoded[] = [];
		visitScope(scope, (entries, node) => {
			for (const entry of entries) {
				if (isFirstPlace(node, placesOf(entry)[at], scope)) {
					items.push(entry);
				}
			}
		});
		return items;
	}

	iterate(args: readonly unknown[]): IteratorObject<Decoded, undefined> {
		const scope = this.#index.scope(args);
		return scope === undefined
			? [].values()
			: new SnapshotIterator(this.#index.tree, scope, this.#index);
	}

	parents(args: readonly unknown[]): Decoded[] {
		const key = this.#index.exactQuery(args);
		const { at, hasSeveralKeys } = this.#index;
		const items: Entry[] = [];
		let node: Node | undefined = this.#index.tree.root;
		for (let i = 0; node !== undefined; i++) {
			if (node.bucket !== undefined) {
				const listed = items.length;
				appendEntries(node, items);
				if (hasSeveralKeys && listed > 0) {
					keepFirstOnPath(items, listed, node, at);
				}
			}
			const segment = key[i];
			node = segment === undefined ? undefined : findChild(node, segment);
		}
		return items;
	}
}

/** Whether all entries of the scope are at one node, which has none of them twice. */
function isOneKey({ kind, top }: Scope): boolean {
	return kind === "subtree" && top.children === undefined;
}

/** Removes, from `from` on, entries of a node that are at one of its ancestors too, where the path has met them. */
function keepFirstOnPath(items: Entry[], from: number, node: Node, at: number): void {
	let kept = from;
	for (let i = from; i < items.length; i++) {
		// `i` is less than the length.
		const entry = items[i]!;
		if (isFirstOnPath(node, placesOf(entry)[at])) {
			items[kept++] = entry;
		}
	}
	items.length = kept;
}
