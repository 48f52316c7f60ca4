import type { Decoded } from "@plinth/resource";
import type { Source } from "../source.ts";
import { itemOf } from "./entry.ts";
import { firstOf, type Node } from "./node.ts";
import { isFirstPlace } from "./scope.ts";
import { snapshotIterator } from "./snapshot-iterator.ts";
import type { Table } from "./table.ts";
import type { TypeIndex } from "./type-index.ts";
import { visitEntries, visitScope } from "./visit.ts";

/** A declared index, for readers. */
export class IndexSource implements Source {
	readonly #table: Table;
	readonly #index: TypeIndex;

	constructor(table: Table, index: TypeIndex) {
		this.#table = table;
		this.#index = index;
	}

	get(args: readonly unknown[]): Decoded | undefined {
		const node = this.#index.tree.find(this.#index.exactQuery(args));
		const entry = node && firstOf(node);
		return entry && itemOf(this.#table.type, entry);
	}

	list(args: readonly unknown[]): Decoded[] {
		const items: Decoded[] = [];
		const scope = this.#index.scope(args);
		if (scope === undefined) {
			return items;
		}
		const { type } = this.#table;
		const { at, hasSeveralKeys } = this.#index;
		visitScope(scope, (entry, node) => {
			if (!hasSeveralKeys || isFirstPlace(node, entry.places[at], scope)) {
				items.push(itemOf(type, entry));
			}
		});
		return items;
	}

	iterate(args: readonly unknown[]): IteratorObject<Decoded, undefined> {
		const scope = this.#index.scope(args);
		return scope === undefined
			? [].values()
			: snapshotIterator(this.#index.tree, scope, this.#table.type, this.#index);
	}

	parents(args: readonly unknown[]): Decoded[] {
		const key = this.#index.exactQuery(args);
		const items = new Set<Decoded>();
		const { type } = this.#table;
		let node: Node | undefined = this.#index.tree.root;
		for (let i = 0; node !== undefined; i++) {
			visitEntries(node, (entry) => items.add(itemOf(type, entry)));
			const segment = key[i];
			node = segment === undefined ? undefined : node.children?.get(segment);
		}
		return [...items];
	}
}
