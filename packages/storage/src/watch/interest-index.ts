import type { ID, Resource } from "@plinth/proto";
import { isImported, type ListQuery, wildcard } from "../query.ts";
import { storedPartition } from "../state-store/resource-key.ts";

/** Who is interested in the resources of a query. */
export interface Interested {
	readonly query: Pick<ListQuery, "tenancy" | "namePrefix" | "region">;
}

/**
 * The cursors of one type family by what their queries select, so that an event reaches those that it concerns
 * without asking the others:
 *
 * ```
 *   partition ──▶ namespace ──▶ name prefix ──▶ cursors
 *    "p" | "*"     "n" | "*"     "", "a", "ab"
 * ```
 *
 * There is one such index for the cursors of one region each, with the region of copies in the partition
 * (`storedPartition`), and one for those of all regions.
 *
 * An event of resource `abc` in `p`/`n` looks in the four places of each that its tenancy matches, and in each for the
 * prefixes of its name: one lookup per distinct length of the prefixes that are there. So the cost grows with the
 * cursors that it concerns, and with the lengths of prefixes, of which there are no more than a name can have.
 *
 * Invariant: `concerned(resource)` are exactly the added cursors whose query matches the resource.
 */
export class InterestIndex<Cursor extends Interested> {
	/** By `storedPartition`. */
	readonly #ofOneRegion: Partitions<Cursor> = new Map();
	readonly #ofAllRegions: Partitions<Cursor> = new Map();

	/** A cursor must be added once only. */
	add(cursor: Cursor): void {
		const { tenancy, namePrefix } = cursor.query;
		const [partitions, partition] = this.#placeOf(cursor);
		const namespaces = getOrAdd(partitions, partition, newMap<PrefixIndex<Cursor>>);
		const prefixes = getOrAdd(namespaces, tenancy.namespace, newPrefixIndex<Cursor>);
		prefixes.add(namePrefix, cursor);
	}

	delete(cursor: Cursor): void {
		const { tenancy, namePrefix } = cursor.query;
		const [partitions, partition] = this.#placeOf(cursor);
		const namespaces = partitions.get(partition);
		const prefixes = namespaces?.get(tenancy.namespace);
		if (namespaces === undefined || prefixes === undefined) {
			return;
		}
		prefixes.delete(namePrefix, cursor);
		if (prefixes.isEmpty) {
			namespaces.delete(tenancy.namespace);
		}
		if (namespaces.size === 0) {
			partitions.delete(partition);
		}
	}

	/** Calls back with each cursor whose query matches the resource, once. It must not change the index. */
	concerned(resource: Resource, found: (cursor: Cursor) => void): void {
		const { id } = resource;
		if (id === undefined) {
			return;
		}
		inPartition(this.#ofOneRegion, storedPartition(id), id, found);
		if (!isImported(resource)) {
			const { region } = id;
			inPartition(this.#ofOneRegion, storedPartition({ tenancy: anyPartition, region }), id, found);
		}
		if (this.#ofAllRegions.size > 0) {
			inPartition(this.#ofAllRegions, id.tenancy?.partition ?? "", id, found);
			inPartition(this.#ofAllRegions, wildcard, id, found);
		}
	}

	#placeOf({ query }: Cursor): readonly [Partitions<Cursor>, string] {
		return query.region === wildcard
			? [this.#ofAllRegions, query.tenancy.partition]
			: [this.#ofOneRegion, storedPartition(query)];
	}
}

/** Cursors by partition and namespace, each a name or the wildcard. */
type Partitions<Cursor> = Map<string, Map<string, PrefixIndex<Cursor>>>;

const anyPartition = { partition: wildcard };

function inPartition<Cursor>(
	partitions: Partitions<Cursor>,
	partition: string,
	{ tenancy, name }: ID,
	found: (cursor: Cursor) => void,
): void {
	const namespaces = partitions.get(partition);
	if (namespaces === undefined) {
		return;
	}
	const namespace = tenancy?.namespace ?? "";
	namespaces.get(namespace)?.prefixesOf(name, found);
	if (namespace !== wildcard) {
		namespaces.get(wildcard)?.prefixesOf(name, found);
	}
}

/** Cursors by name prefix. */
class PrefixIndex<Cursor> {
	readonly #cursors = new Map<string, Set<Cursor>>();
	/** How many different prefixes have each length. */
	readonly #lengths = new Map<number, number>();

	get isEmpty(): boolean {
		return this.#cursors.size === 0;
	}

	add(prefix: string, cursor: Cursor): void {
		let cursors = this.#cursors.get(prefix);
		if (cursors === undefined) {
			cursors = new Set();
			this.#cursors.set(prefix, cursors);
			this.#lengths.set(prefix.length, (this.#lengths.get(prefix.length) ?? 0) + 1);
		}
		cursors.add(cursor);
	}

	delete(prefix: string, cursor: Cursor): void {
		const cursors = this.#cursors.get(prefix);
		if (cursors === undefined || !cursors.delete(cursor) || cursors.size > 0) {
			return;
		}
		this.#cursors.delete(prefix);
		const left = (this.#lengths.get(prefix.length) ?? 1) - 1;
		if (left === 0) {
			this.#lengths.delete(prefix.length);
		} else {
			this.#lengths.set(prefix.length, left);
		}
	}

	/** Calls back with the cursors of all prefixes of the name. */
	prefixesOf(name: string, found: (cursor: Cursor) => void): void {
		for (const length of this.#lengths.keys()) {
			const cursors = length <= name.length && this.#cursors.get(name.slice(0, length));
			if (cursors) {
				cursors.forEach(found);
			}
		}
	}
}

function newMap<V>(): Map<string, V> {
	return new Map();
}

function newPrefixIndex<Cursor>(): PrefixIndex<Cursor> {
	return new PrefixIndex();
}

function getOrAdd<V>(map: Map<string, V>, key: string, make: () => V): V {
	let value = map.get(key);
	if (value === undefined) {
		value = make();
		map.set(key, value);
	}
	return value;
}
