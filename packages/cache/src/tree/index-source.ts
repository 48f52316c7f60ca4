import type { Decoded } from "@plinth/resource";
import type { Source } from "../source.ts";
import { entriesInOrder, firstOf } from "./bucket.ts";
import { findChild } from "./children.ts";
import { type Node, placesOf } from "./node.ts";
import { isFirstPlace } from "./scope.ts";
import { SnapshotIterator } from "./snapshot-iterator.ts";
import type { TypeIndex } from "./type-index.ts";
import { visitScope } from "./visit.ts";

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
		const items: Decoded[] = [];
		const { at, hasSeveralKeys } = this.#index;
		visitScope(scope, (entries, node) => {
			for (const entry of entries) {
				if (!hasSeveralKeys || isFirstPlace(node, placesOf(entry)[at], scope)) {
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
		const items = new Set<Decoded>();
		let node: Node | undefined = this.#index.tree.root;
		for (let i = 0; node !== undefined; i++) {
			for (const entry of entriesInOrder(node).flat()) {
				items.add(entry);
			}
			const segment = key[i];
			node = segment === undefined ? undefined : findChild(node, segment);
		}
		return [...items];
	}
}
