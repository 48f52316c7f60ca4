import type { Decoded, ResourceType } from "@plinth/resource";
import { Cursor } from "./cursor.ts";
import { decodeItem, Entry, itemOf } from "./entry.ts";
import { isFirstPlace, type Scope } from "./scope.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Tree } from "./tree.ts";
import type { TypeIndex } from "./type-index.ts";

/**
 * The items of a scope as they are at the time of the call, each once. The snapshot is given up at the
 * end, on `return`, or with the iterator itself.
 */
export function snapshotIterator(
	tree: Tree,
	scope: Scope,
	type: ResourceType,
	index?: TypeIndex,
): IteratorObject<Decoded, undefined> {
	return new SnapshotIterator(tree, scope, type, index);
}

class SnapshotIterator extends Iterator<Decoded, undefined> {
	readonly #tree: Tree;
	readonly #scope: Scope;
	readonly #type: ResourceType;
	readonly #index: TypeIndex | undefined;
	/** Until the end. */
	#reading: { readonly snapshot: Snapshot; readonly cursor: Cursor } | undefined;

	constructor(tree: Tree, scope: Scope, type: ResourceType, index: TypeIndex | undefined) {
		super();
		this.#tree = tree;
		this.#scope = scope;
		this.#type = type;
		this.#index = index;
		const snapshot = tree.snapshots.open(scope.top);
		this.#reading = { snapshot, cursor: new Cursor(snapshot, scope) };
	}

	override next(): IteratorResult<Decoded, undefined> {
		if (this.#reading === undefined) {
			return { done: true, value: undefined };
		}
		const { snapshot, cursor } = this.#reading;
		for (let at = cursor.next(); at !== undefined; at = cursor.next()) {
			const version = snapshot.versionOf(at.entry);
			if (
				!this.#index?.hasSeveralKeys ||
				isFirstPlace(at.node, version.places[this.#index.at], this.#scope)
			) {
				const value =
					version instanceof Entry
						? itemOf(this.#type, version)
						: (version.decoded ?? decodeItem(this.#type, version.resource));
				return { done: false, value };
			}
		}
		return this.return();
	}

	override return(): IteratorResult<Decoded, undefined> {
		if (this.#reading !== undefined) {
			this.#reading = undefined;
			this.#tree.snapshots.close();
		}
		return { done: true, value: undefined };
	}
}
