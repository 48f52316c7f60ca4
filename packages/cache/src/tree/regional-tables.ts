import type { Table } from "./table.ts";

/** The region of a read that reads all regions. */
export const allRegions = "*";

/**
 * The resources of one type: those that are at home here in one table, and copies of other regions' resources in a table
 * for each region.
 *
 * ```
 *   home      ─▶ Table     by tenancy, by name; its indexes
 *   "eu-west" ─▶ Table     the same of copies
 *   "us-east" ─▶ Table
 * ```
 *
 * Invariant: a resource is in the table of `id.region`, and in `home` if it has none. So a copy and a resource of its name
 * never meet, and reads of what is at home cost the same with copies as without.
 *
 * The table of a region is created for its first copy, and kept.
 */
export class RegionalTables {
	readonly home: Table;
	/** The region of the service, if it has one: it names `home`. */
	readonly #own: string | undefined;
	readonly #create: () => Table;
	/** Ordered by region. */
	#copies: ReadonlyMap<string, Table> = new Map();

	constructor(own: string | undefined, create: () => Table) {
		this.#own = own;
		this.home = create();
		this.#create = create;
	}

	/** The table of copies of the region, or of what is at home if there is none; `undefined` if it has never had any. */
	of(region: string | undefined): Table | undefined {
		return region && region !== this.#own ? this.#copies.get(region) : this.home;
	}

	/** Like `of`; creates the table if it is missing. */
	ensure(region: string | undefined): Table {
		return this.of(region) ?? this.#add(region ?? "");
	}

	/** The tables that a read of the region reads: one or none; all for `*`, in the order of their regions, home first. */
	select(region: string | undefined): readonly Table[] {
		if (region === allRegions) {
			return [this.home, ...this.#copies.values()];
		}
		const table = this.of(region);
		return table === undefined ? [] : [table];
	}

	#add(region: string): Table {
		const table = this.#create();
		this.#copies = new Map(
			[...this.#copies, [region, table] as const].sort(([a], [b]) => (a < b ? -1 : 1)),
		);
		return table;
	}
}
