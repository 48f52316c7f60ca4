import type { Decoded, ResourceType } from "@plinth/resource";
import { CacheError } from "../cache-error.ts";
import type { ReferenceLike } from "../key.ts";
import type { Source } from "../source.ts";
import { concatenated } from "./concatenated.ts";
import { Entry } from "./node.ts";
import type { RegionalTables } from "./regional-tables.ts";
import { SnapshotIterator } from "./snapshot-iterator.ts";
import type { Table } from "./table.ts";
import { visitScope } from "./visit.ts";

/** The resources of a type by ID, for readers. */
export class IdSource implements Source {
	readonly #tables: RegionalTables;
	readonly #home: Table;
	/** The type that readers decode the data as: the type of the tables, or another group version of it. */
	readonly #type: ResourceType;

	constructor(tables: RegionalTables, type: ResourceType) {
		this.#tables = tables;
		this.#home = tables.home;
		this.#type = type;
	}

	find(id: unknown): Decoded | undefined {
		const whole = this.#whole(id);
		if (whole.region) {
			return this.#findIn(whole.region, whole);
		}
		const entry = this.#home.find(whole);
		return entry && this.#item(entry);
	}

	#findIn(region: string, id: ReferenceLike): Decoded | undefined {
		for (const table of this.#tables.select(region)) {
			const entry = table.find(id);
			if (entry !== undefined) {
				return this.#item(entry);
			}
		}
		return undefined;
	}

	get([id]: readonly unknown[]): Decoded | undefined {
		return this.find(id);
	}

	list([prefix]: readonly unknown[]): Decoded[] {
		const known = this.#prefix(prefix);
		return known.region
			? this.#tables.select(known.region).flatMap((table) => this.#listIn(table, known))
			: this.#listIn(this.#home, known);
	}

	#listIn(table: Table, prefix: ReferenceLike): Decoded[] {
		const scope = table.scope(prefix);
		if (scope === undefined || scope instanceof Entry) {
			return scope === undefined ? [] : [this.#item(scope)];
		}
		const items: Decoded[] = [];
		visitScope(scope, (entries) => {
			for (const entry of entries) {
				items.push(this.#item(entry));
			}
		});
		return items;
	}

	iterate([prefix]: readonly unknown[]): IteratorObject<Decoded, undefined> {
		const known = this.#prefix(prefix);
		return known.region
			? concatenated(
					this.#tables.select(known.region).map((table) => this.#iterateIn(table, known)),
				)
			: this.#iterateIn(this.#home, known);
	}

	#iterateIn(table: Table, prefix: ReferenceLike): IteratorObject<Decoded, undefined> {
		const scope = table.scope(prefix);
		if (scope === undefined || scope instanceof Entry) {
			return (scope === undefined ? [] : [this.#item(scope)]).values();
		}
		const entries = new SnapshotIterator(table.ids, scope);
		return this.#type === table.type ? entries : entries.map((entry) => this.#item(entry));
	}

	parents(args: readonly unknown[]): Decoded[] {
		const item = this.get(args);
		return item === undefined ? [] : [item];
	}

	#item(entry: Entry): Decoded {
		return this.#type === this.#home.type ? entry : new Entry(this.#type, entry.resource);
	}

	#whole(id: unknown): ReferenceLike {
		if (!isReference(id) || typeof id.name !== "string") {
			throw new CacheError(`${this.#type.key} by ID: bad argument: expected an ID or a reference`);
		}
		return id;
	}

	#prefix(prefix: unknown): ReferenceLike {
		if (prefix === undefined) {
			return {};
		}
		if (!isReference(prefix)) {
			throw new CacheError(
				`${this.#type.key} by ID: bad argument: expected an ID, a reference or a part of one`,
			);
		}
		return prefix;
	}
}

function isReference(value: unknown): value is ReferenceLike {
	return typeof value === "object" && value !== null;
}
