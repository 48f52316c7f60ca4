import type { ID, Resource } from "@plinth/proto";
import {
	familyKey,
	freezeInDevelopment,
	type ResourceName,
	type ResourceType,
} from "@plinth/resource";
import type { TypeStats, UndecodableListener } from "./cache.ts";
import { CacheError, describe } from "./cache-error.ts";
import type { AnyIndex } from "./index-definition.ts";
import type { Query } from "./reader.ts";
import type { Source, Sources } from "./source.ts";
import { IdSource } from "./tree/id-source.ts";
import { IndexSource } from "./tree/index-source.ts";
import { RegionalIdSource, RegionalIndexSource } from "./tree/regional-source.ts";
import { allRegions, RegionalTables } from "./tree/regional-tables.ts";
import { Table } from "./tree/table.ts";
import { validateTable } from "./tree/validate.ts";

/** The options of a store. */
export interface StoreOptions {
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
	readonly queries: ReadonlyMap<string, Query>;
	/** The region of the service, if it has one. */
	readonly region: string | undefined;
	readonly validate: boolean;
	readonly onUndecodable: UndecodableListener | undefined;
}

/** The contents of a cache: tables for each type. */
export class Store implements Sources {
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
	readonly queries: ReadonlyMap<string, Query>;
	readonly #validate: boolean;
	/** By family. */
	readonly #tables = new Map<string, RegionalTables>();
	/** The tables of the last write: consecutive writes are mostly of the same type. */
	#last: RegionalTables | undefined;
	readonly #sources = new Map<ResourceType | AnyIndex, Source>();

	constructor({ types, indexes, queries, region, validate, onUndecodable }: StoreOptions) {
		this.types = Object.freeze([...types]);
		this.indexes = Object.freeze([...indexes]);
		this.queries = queries;
		this.#validate = validate;
		for (const type of types) {
			const own = indexes.filter((index) => index.type.family === type.family);
			const tables = new RegionalTables(region, () => new Table(type, own, onUndecodable));
			this.#tables.set(type.family, tables);
			this.#sources.set(type, new IdSource(tables, type));
			for (const index of tables.home.indexes) {
				this.#sources.set(index.definition, new IndexSource(index));
			}
		}
	}

	insert(resource: Resource): void {
		const table = this.#tablesOf(resource.id).ensure(resource.id?.region);
		freezeInDevelopment(resource);
		table.insert(resource);
		this.#check(table);
	}

	delete(target: Resource | ResourceName): Resource | undefined {
		const id = "name" in target ? target : target.id;
		const table = this.#tablesOf(id).of(id?.region);
		if (id === undefined || table === undefined) {
			return undefined;
		}
		const deleted = table.delete(id);
		this.#check(table);
		return deleted;
	}

	ids(type: ResourceType, region?: string): ID[] {
		const ids: ID[] = [];
		for (const table of this.#tablesOfType(type).select(region)) {
			for (const { resource } of table.entries()) {
				if (resource.id !== undefined) {
					ids.push(resource.id);
				}
			}
		}
		return ids;
	}

	size(type: ResourceType): number {
		return sizeOf(this.#tablesOfType(type));
	}

	stats(): TypeStats[] {
		return Array.from(this.#tables.values(), (tables) => ({
			type: tables.home.type.key,
			size: sizeOf(tables),
			indexes: tables.home.indexes.map(({ definition, at }) => ({
				name: definition.name,
				keys: sum(tables, ({ indexes }) => indexes[at]?.tree.size ?? 0),
			})),
		}));
	}

	source(target: ResourceType | AnyIndex): Source {
		return this.#sources.get(target) ?? this.#otherSource(target);
	}

	sourcesIn(region: string): Sources {
		if (region === "") {
			return this;
		}
		return {
			queries: this.queries,
			source: (target) => {
				// It throws if the cache does not have the target.
				const home = this.source(target);
				return "keys" in target
					? new RegionalIndexSource(this.#tablesOfType(target.type), target, region)
					: new RegionalIdSource(home, region);
			},
			sourcesIn: (other) => this.sourcesIn(other),
		};
	}

	/** Types are looked up by family, so the target need not be the declared object. */
	#otherSource(target: ResourceType | AnyIndex): Source {
		if ("keys" in target) {
			throw new CacheError(`the cache has no index "${target.name}" of ${target.type.key}`);
		}
		const tables = this.#tablesOfType(target);
		const { type } = tables.home;
		return new IdSource(tables, target.schema.typeName === type.schema.typeName ? type : target);
	}

	#tablesOfType(type: ResourceType): RegionalTables {
		const tables = this.#tables.get(type.family);
		if (tables === undefined) {
			throw new CacheError(`the cache does not contain the type ${type.key}`);
		}
		return tables;
	}

	#tablesOf(id: Partial<ResourceName> | undefined): RegionalTables {
		const last = this.#last?.home.type.type;
		if (this.#last && last?.kind === id?.type?.kind && last?.group === id?.type?.group) {
			return this.#last;
		}
		const tables = id?.type && this.#tables.get(familyKey(id.type));
		this.#last = tables;
		if (tables === undefined) {
			throw new CacheError(`the cache does not contain the type of ${describe(id)}`);
		}
		return tables;
	}

	#check(table: Table): void {
		if (this.#validate) {
			validateTable(table);
		}
	}
}

/** The number of resources, with copies. */
function sizeOf(tables: RegionalTables): number {
	return sum(tables, ({ size }) => size);
}

function sum(tables: RegionalTables, count: (table: Table) => number): number {
	return tables.select(allRegions).reduce((total, table) => total + count(table), 0);
}
