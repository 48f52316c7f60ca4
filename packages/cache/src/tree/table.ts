import type { Resource } from "@plinth/proto";
import { hasNamespace, hasPartition, type ResourceType } from "@plinth/resource";
import { CacheError, describe } from "../cache-error.ts";
import type { AnyIndex } from "../index-definition.ts";
import { isUnit, type Key, type ReferenceLike } from "../key.ts";
import { Candidate, Entry, type Place, type Version } from "./entry.ts";
import type { Node } from "./node.ts";
import type { Scope } from "./scope.ts";
import { SegmentMap } from "./segment-map.ts";
import { Tree } from "./tree.ts";
import { TypeIndex } from "./type-index.ts";

const nowhere: readonly Place[] = [];

/** The resources of one type, with all indexes on them. */
export class Table {
	readonly type: ResourceType;
	/** By tenancy, then by name. */
	readonly ids = new Tree("by-name");
	readonly indexes: readonly TypeIndex[];
	readonly #partitioned: boolean;
	readonly #namespaced: boolean;

	constructor(type: ResourceType, indexes: readonly AnyIndex[]) {
		this.type = type;
		this.indexes = indexes.map((definition, at) => new TypeIndex(definition, at));
		this.#partitioned = hasPartition(type.scope);
		this.#namespaced = hasNamespace(type.scope);
	}

	get size(): number {
		return this.ids.size;
	}

	/** The entry of that tenancy and name, or `undefined`. */
	find({ tenancy, name }: ReferenceLike): Entry | undefined {
		let node: Node | undefined = this.ids.root;
		if (this.#partitioned) {
			node = node.children?.get(tenancy?.partition ?? "");
		}
		if (this.#namespaced) {
			node = node?.children?.get(tenancy?.namespace ?? "");
		}
		const names = node?.bucket;
		return names instanceof SegmentMap ? names.get(name ?? "") : undefined;
	}

	/** All entries, in no order. */
	entries(): Iterable<Entry> {
		return entriesBelow(this.ids.root);
	}

	/** What the part of an ID means: one entry, a part of the tree, or `undefined` for nothing. */
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
	 * Puts a resource in, in place of the one of that name.
	 *
	 * @throws IndexError where an index can't take it, CacheError where it has no name; then nothing
	 * has changed.
	 */
	insert(resource: Resource): void {
		const { id } = resource;
		if (!id?.name) {
			throw new CacheError(`${describe(id)} can't be cached: it has no name`);
		}
		const entry = this.find(id);
		if (entry?.resource === resource) {
			return;
		}
		const item = new Candidate(this.type, resource);
		const keys = this.indexes.map((index) => index.keysOf(item));
		// From here on nothing can fail.
		const before = entry?.places ?? nowhere;
		const places = keys.map((of, at) => this.indexes[at]?.placeFor(of, before[at]));
		const version = { resource, decoded: item.decoded, places };
		if (entry === undefined) {
			this.#add(version, id.name, this.#tenancyOf(id));
		} else {
			this.#replace(entry, version);
		}
	}

	/** Takes the resource of that name out, and answers it; `undefined` where there is none. */
	delete(id: ReferenceLike): Resource | undefined {
		const entry = this.find(id);
		if (entry === undefined) {
			return undefined;
		}
		for (const index of this.indexes) {
			index.move(entry, entry.places[index.at], undefined);
		}
		this.ids.remove(entry.parent, entry);
		return entry.resource;
	}

	#add(version: Version, name: string, tenancy: Key): void {
		const home = this.ids.ensure(tenancy);
		const entry = new Entry(home, name, version);
		this.ids.add(home, entry);
		for (const index of this.indexes) {
			index.move(entry, undefined, entry.places[index.at]);
		}
	}

	#replace(entry: Entry, version: Version): void {
		this.ids.snapshots.latest?.keepVersion(entry);
		for (const index of this.indexes) {
			index.tree.snapshots.latest?.keepVersion(entry);
			index.move(entry, entry.places[index.at], version.places[index.at]);
		}
		entry.resource = version.resource;
		entry.decoded = version.decoded;
		entry.places = version.places;
	}

	/** The units of tenancy that the scope of the type has. */
	#tenancyOf({ tenancy }: ReferenceLike): Key {
		const { partition = "", namespace = "" } = tenancy ?? {};
		if (this.#namespaced) {
			return [partition, namespace];
		}
		return this.#partitioned ? [partition] : [];
	}
}

function* entriesBelow(node: Node): Generator<Entry> {
	if (node.bucket instanceof SegmentMap) {
		yield* node.bucket.values();
	}
	for (const child of node.children?.values() ?? []) {
		yield* entriesBelow(child);
	}
}
