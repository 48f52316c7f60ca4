import { Cursor } from "./cursor.ts";
import { type Entry, placesOf } from "./node.ts";
import { isFirstPlace, type Scope } from "./scope.ts";
import type { Tree } from "./tree.ts";
import type { TypeIndex } from "./type-index.ts";

/**
 * The entries of a scope at the time when the iterator is created, without duplicates. The snapshot is
 * released at the end, on `return`, or when the iterator is garbage-collected.
 */
export class SnapshotIterator extends Iterator<Entry, undefined> {
	readonly #tree: Tree;
	readonly #scope: Scope;
	readonly #index: TypeIndex | undefined;
	/** Cleared at the end. */
	#cursor: Cursor | undefined;

	constructor(tree: Tree, scope: Scope, index?: TypeIndex) {
		super();
		this.#tree = tree;
		this.#scope = scope;
		this.#index = index;
		this.#cursor = new Cursor(tree.snapshots.open(scope.top), scope);
	}

	override next(): IteratorResult<Entry, undefined> {
		for (let item = this.#cursor?.next(); item !== undefined; item = this.#cursor?.next()) {
			const { entry, node } = item;
			if (
				!this.#index?.hasSeveralKeys ||
				isFirstPlace(node, placesOf(entry)[this.#index.at], this.#scope)
			) {
				return { done: false, value: entry };
			}
		}
		return this.return();
	}

	override return(): IteratorResult<Entry, undefined> {
		if (this.#cursor !== undefined) {
			this.#cursor = undefined;
			this.#tree.snapshots.close();
		}
		return { done: true, value: undefined };
	}
}
