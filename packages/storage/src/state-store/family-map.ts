import type { FamilyLike } from "@plinth/resource";

/** Values by type family: by kind and then by group, so that a lookup builds no key. */
export class FamilyMap<V> {
	readonly #kinds = new Map<string, Map<string, V>>();

	get({ group, kind }: FamilyLike): V | undefined {
		return this.#kinds.get(kind)?.get(group);
	}

	set({ group, kind }: FamilyLike, value: V): void {
		const groups = this.#kinds.get(kind);
		if (groups === undefined) {
			this.#kinds.set(kind, new Map([[group, value]]));
		} else {
			groups.set(group, value);
		}
	}

	*values(): Generator<V, void, undefined> {
		for (const groups of this.#kinds.values()) {
			yield* groups.values();
		}
	}
}
