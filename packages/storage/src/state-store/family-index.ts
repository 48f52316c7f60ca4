import type { ResourceName } from "@plinth/resource";
import { NameMap } from "./name-map.ts";
import { OrderedMap, type OrderedSnapshot, type PageDied } from "./ordered-map.ts";
import { orderKey } from "./resource-key.ts";

type Named = Pick<ResourceName, "tenancy" | "name" | "region">;

/**
 * The current resources of one type family, in two structures:
 *
 * ```
 *   read      (namespace, partition, name) ──hash──▶ resource ◀─────┐    NameMap
 *                                                                   │    the same objects
 *   snapshot  partition, namespace, name ──in order──▶ resource ◀───┘    OrderedMap
 * ```
 *
 * A lookup by hash reads a few objects; one in the tree builds a key, and compares it with keys all over the
 * memory. Only the tree has an order, and snapshots.
 *
 * Invariant: after each `set` and `delete`, both have the same names and values. Nothing else writes to them.
 */
export class FamilyIndex<V> {
	readonly #byName: NameMap<V>;
	readonly #ordered: OrderedMap<V>;

	/** @param pageDied Called with each page of the tree that only snapshots still use. */
	constructor(pageDied?: PageDied) {
		this.#byName = new NameMap();
		this.#ordered = new OrderedMap(pageDied);
	}

	/** The value of that tenancy and name, or `undefined`. */
	get(id: Named): V | undefined {
		return this.#byName.get(id);
	}

	/** Sets the value of a name, and returns the replaced value. */
	set(id: Named, value: V): V | undefined {
		this.#byName.set(id, value);
		return this.#ordered.set(orderKey(id), value);
	}

	/** Removes a name, and returns its value. */
	delete(id: Named): V | undefined {
		return this.#byName.delete(id) ? this.#ordered.delete(orderKey(id)) : undefined;
	}

	/** An immutable snapshot of all values by `orderKey`. */
	snapshot(): OrderedSnapshot<V> {
		return this.#ordered.snapshot();
	}
}
