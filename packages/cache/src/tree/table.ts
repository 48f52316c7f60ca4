import type { Resource } from "@plinth/proto";
import { hasNamespace, hasPartition, type ResourceType } from "@plinth/resource";
import type { UndecodableListener } from "../cache.ts";
import { CacheError, describe } from "../cache-error.ts";
import type { AnyIndex } from "../index-definition.ts";
import { isUnit, type Key, type ReferenceLike } from "../key.ts";
import { childrenInOrder } from "./children.ts";
import { NameMap } from "./name-map.ts";
import { Entry, homeOf, type Node, type Place, type Places, place, placesOf } from "./node.ts";
import type { Scope } from "./scope.ts";
import { Tenancies } from "./tenancies.ts";
import { Tree } from "./tree.ts";
import { TypeIndex } from "./type-index.ts";

/** The resources of one type, with all indexes on them. */
export class Table {
	readonly type: ResourceType;
	/** By tenancy, then by name. */
	readonly ids = new Tree("by-name");
	readonly indexes: readonly TypeIndex[];
	readonly #tenancies = new Tenancies();
	readonly #partitioned: boolean;
	readonly #namespaced: boolean;

	constructor(
		type: ResourceType,
		indexes: readonly AnyIndex[],
		onUndecodable: UndecodableListener | undefined,
	) {
		this.type = type;
		this.indexes = indexes.map((definition, at) => new TypeIndex(definition, at, onUndecodable));
		this.#partitioned = hasPartition(type.scope);
		this.#namespaced = hasNamespace(type.scope);
	}

	get size(): number {
		return this.ids.size;
	}

	/** The entry of that tenancy and name; `undefined` if not cached. */
	find(id: ReferenceLike): Entry | undefined {
		return this.#tenancies.get(this.#partitionOf(id), this.#namespaceOf(id))?.get(id.name ?? "");
	}

	/** Empty if the scope of the type lacks it. */
	#partitionOf({ tenancy }: ReferenceLike): string {
		return this.#partitioned ? (tenancy?.partition ?? "") : "";
	}

	/** Empty if the scope of the type lacks it. */
	#namespaceOf({ tenancy }: ReferenceLike): string {
		return this.#namespaced ? (tenancy?.namespace ?? "") : "";
	}

	/** The number of tenancies, for the check of invariants. */
	get tenancies(): number {
		return this.#tenancies.size;
	}

	/** All entries, in no particular order. */
	entries(): Iterable<Entry> {
		return entriesBelow(this.ids.root);
	}

	/** The matches of a partial ID: one entry, a part of the tree, or `undefined` if there are none. */
	scope(prefix: ReferenceLike): Entry | Scope | undefined {
		const units = this.#tenancyOf(prefix);
		const open = units.findIndex((unit) => !isUnit(unit));
		if (open < 0 && isUnit(prefix.name)) {
			return this.find(prefix);
		}
		const top = this.ids.find(open < 0 ? units : units.slice(0, open));
		if (top === undefined) {
			return undefined;
		}
		return open < 0 && prefix.namePrefix
			? { kind: "entries", top, open: prefix.namePrefix }
			: { kind: "subtree", top };
	}

	/**
	 * Inserts a resource, or replaces the one with the same name.
	 *
	 * @throws IndexError if an index fails on it, CacheError if it has no name. The table is unchanged then.
	 */
	insert(resource: Resource): void {
		const { id } = resource;
		if (!id?.name) {
			throw new CacheError(`${describe(id)} can't be cached: it has no name`);
		}
		const entry = new Entry(this.type, resource);
		const keys = this.indexes.map((index) => index.keysOf(entry));
		// From here on nothing can fail, and no user code runs.
		const names = this.#tenancies.get(this.#partitionOf(id), this.#namespaceOf(id));
		const before = names?.get(id.name);
		if (before === undefined) {
			const home = names?.home ?? this.ids.ensure(this.#tenancyOf(id));
			this.#add(entry, home, keys);
			if (names === undefined && home.bucket instanceof NameMap) {
				this.#tenancies.set(this.#partitionOf(id), this.#namespaceOf(id), home.bucket);
			}
		} else if (before.resource !== resource) {
			this.#replace(before, entry, keys);
		}
	}

	/** Removes and returns the resource of that name; `undefined` if it is not cached. */
	delete(id: ReferenceLike): Resource | undefined {
		const entry = this.find(id);
		const home = entry && homeOf(entry);
		if (entry === undefined || home === undefined) {
			return undefined;
		}
		const places = placesOf(entry);
		for (const index of this.indexes) {
			index.remove(entry, places[index.at]);
		}
		this.ids.remove(home, entry);
		if (home.bucket === undefined) {
			this.#tenancies.delete(this.#partitionOf(id), this.#namespaceOf(id));
		}
		return entry.resource;
	}

	#add(entry: Entry, home: Node, keys: readonly (readonly Key[])[]): void {
		place(entry, home, nowhere);
		if (this.indexes.length > 0) {
			// `map`, because `push` would allocate room for 16 more.
			const places = this.indexes.map((index) => index.add(entry, keys[index.at] ?? []));
			place(entry, home, places);
		}
		this.ids.add(home, entry);
	}

	#replace(before: Entry, entry: Entry, keys: readonly (readonly Key[])[]): void {
		const home = homeOf(before);
		if (home === undefined) {
			return;
		}
		const old = placesOf(before);
		let places: Place[] | undefined;
		place(entry, home, old);
		for (const index of this.indexes) {
			const from = old[index.at];
			const to = index.replace(before, from, entry, keys[index.at] ?? []);
			if (to !== from) {
				places ??= old.slice();
				places[index.at] = to;
			}
		}
		if (places !== undefined) {
			place(entry, home, places);
		}
		this.ids.replace(home, before, entry);
	}

	/** The units of tenancy that the scope of the type has. */
	#tenancyOf(id: ReferenceLike): Key {
		if (this.#namespaced) {
			return [this.#partitionOf(id), this.#namespaceOf(id)];
		}
		return this.#partitioned ? [this.#partitionOf(id)] : [];
	}
}

const nowhere: Places = [];

function* entriesBelow(node: Node): Generator<Entry> {
	if (node.bucket instanceof NameMap) {
		yield* node.bucket.values();
	}
	for (const child of childrenInOrder(node).flat()) {
		yield* entriesBelow(child);
	}
}
