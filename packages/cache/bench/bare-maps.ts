import type { ID, Reference } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import { Album } from "../src/demo-types.fixture.ts";
import type { Contender, IndexCount } from "./contender.ts";
import type { AlbumItem } from "./data-set.ts";

type ByName = Map<string, AlbumItem>;
type ById = Map<string, Map<string, ByName>>;
type ByReference = Map<string, Map<string, Map<string, Map<string, Map<string, Set<AlbumItem>>>>>>;

/**
 * The floor: nested maps written by hand for just this, unordered, without any of the cache's
 * promises. What it does not do: order, prefixes, snapshots, errors.
 */
export class BareMaps implements Contender {
	readonly #indexes: IndexCount;
	readonly #byId: ById = new Map();
	readonly #byLabel: ByReference = new Map();
	readonly #byGenre: ByReference = new Map();
	readonly #byOwner: ByReference = new Map();
	/** Keys of paths end where they end: sets by shelf, box and slot. */
	readonly #byPath = new Map<string, Map<string, Map<string, Set<AlbumItem>>>>();
	readonly #byTitle = new Map<string, Set<AlbumItem>>();

	constructor(indexes: IndexCount) {
		this.#indexes = indexes;
	}

	insertAll(items: readonly AlbumItem[]): void {
		for (const item of items) {
			// Where the data is needed it comes from where the cache gets it.
			this.#insert(this.#indexes > 0 ? decodeShared(Album, item.resource) : item);
		}
	}

	#insert(item: AlbumItem): void {
		// The data set gives each an ID and a tenancy.
		const id = item.resource.id!;
		const names = child(child(this.#byId, id.tenancy!.partition), id.tenancy!.namespace);
		const before = names.get(id.name);
		names.set(id.name, item);
		if (this.#indexes > 0) {
			if (before !== undefined) {
				this.#unindex(before);
			}
			this.#index(item);
		}
	}

	#index(item: AlbumItem): void {
		ensureSet(this.#byLabel, item.data.label).add(item);
		if (this.#indexes === 5) {
			ensureSet(this.#byGenre, item.data.artists[0]).add(item);
			ensureSet(this.#byOwner, item.resource.owner).add(item);
			const [shelf = "", box = "", slot = ""] = item.data.path.split("/");
			ensure(child(child(this.#byPath, shelf), box), slot).add(item);
			ensure(this.#byTitle, item.data.title).add(item);
		}
	}

	#unindex(item: AlbumItem): void {
		findSet(this.#byLabel, item.data.label)?.delete(item);
		if (this.#indexes === 5) {
			findSet(this.#byGenre, item.data.artists[0])?.delete(item);
			findSet(this.#byOwner, item.resource.owner)?.delete(item);
			const [shelf = "", box = "", slot = ""] = item.data.path.split("/");
			this.#byPath.get(shelf)?.get(box)?.get(slot)?.delete(item);
			this.#byTitle.get(item.data.title)?.delete(item);
		}
	}

	deleteAll(ids: readonly ID[]): void {
		for (const id of ids) {
			const names = this.#byId.get(id.tenancy!.partition)?.get(id.tenancy!.namespace);
			const item = names?.get(id.name);
			if (item !== undefined) {
				names?.delete(id.name);
				if (this.#indexes > 0) {
					this.#unindex(item);
				}
			}
		}
	}

	getAll(ids: readonly ID[]): number {
		let found = 0;
		for (const id of ids) {
			const item = this.#byId.get(id.tenancy!.partition)?.get(id.tenancy!.namespace)?.get(id.name);
			if (item?.resource !== undefined) {
				found++;
			}
		}
		return found;
	}

	listLabels(labels: readonly Reference[]): number {
		let listed = 0;
		for (const label of labels) {
			listed += [...(findSet(this.#byLabel, label) ?? [])].length;
		}
		return listed;
	}

	listGenres(genres: readonly Reference[]): number {
		let listed = 0;
		for (const genre of genres) {
			listed += [...(findSet(this.#byGenre, genre) ?? [])].length;
		}
		return listed;
	}

	parents(paths: readonly string[]): number {
		let found = 0;
		for (const path of paths) {
			const items: AlbumItem[] = [];
			const [shelf = "", box = "", slot = ""] = path.split("/");
			const boxes = this.#byPath.get(shelf)?.get(box);
			items.push(...(boxes?.get("") ?? []));
			if (slot !== "") {
				items.push(...(boxes?.get(slot) ?? []));
			}
			found += items.length;
		}
		return found;
	}
}

function child<V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> {
	let inner = map.get(key);
	if (inner === undefined) {
		inner = new Map();
		map.set(key, inner);
	}
	return inner;
}

function ensure(map: Map<string, Set<AlbumItem>>, key: string): Set<AlbumItem> {
	let items = map.get(key);
	if (items === undefined) {
		items = new Set();
		map.set(key, items);
	}
	return items;
}

type ReferenceParts = Pick<Reference, "type" | "tenancy" | "name">;

function ensureSet(index: ByReference, reference: ReferenceParts | undefined): Set<AlbumItem> {
	// The data set gives each reference a type and a tenancy.
	const { type, tenancy, name } = reference!;
	const kinds = child(child(index, type!.group), type!.kind);
	return ensure(child(child(kinds, tenancy!.partition), tenancy!.namespace), name);
}

function findSet(
	index: ByReference,
	reference: ReferenceParts | undefined,
): Set<AlbumItem> | undefined {
	const { type, tenancy, name } = reference!;
	return index
		.get(type!.group)
		?.get(type!.kind)
		?.get(tenancy!.partition)
		?.get(tenancy!.namespace)
		?.get(name);
}
