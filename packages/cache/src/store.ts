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
import { Table } from "./tree/table.ts";
import { validateTable } from "./tree/validate.ts";

/** The options of a store. */
export interface StoreOptions {
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
	readonly queries: ReadonlyMap<string, Query>;
	readonly validate: boolean;
	readonly onUndecodable: UndecodableListener | undefined;
}

/** The contents of a cache: a table for each type. */
export class Store implements Sources {
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
	readonly queries: ReadonlyMap<string, Query>;
	readonly #validate: boolean;
	/** By family. */
	readonly #tables = new Map<string, Table>();
	/** The table of the last write: consecutive writes are mostly of the same type. */
	#last: Table | undefined;
	readonly #sources = new Map<ResourceType | AnyIndex, Source>();

	constructor({ types, indexes, queries, validate, onUndecodable }: StoreOptions) {
		this.types = Object.freeze([...types]);
		this.indexes = Object.freeze([...indexes]);
		this.queries = queries;
		this.#validate = validate;
		for (const type of types) {
			const table = new Table(
				type,
				indexes.filter((index) => index.type.family === type.family),
				onUndecodable,
			);
			this.#tables.set(type.family, table);
			this.#sources.set(type, new IdSource(table, type));
			for (const index of table.indexes) {
				this.#sources.set(index.definition, new IndexSource(index));
			}
		}
	}

	insert(resource: Resource): void {
		const table = this.#tableOf(resource.id);
		freezeInDevelopment(resource);
		table.insert(resource);
		this.#check(table);
	}

	delete(target: Resource | ResourceName): Resource | undefined {
		const id = "name" in target ? target : target.id;
		const table = this.#tableOf(id);
		const deleted = id && table.delete(id);
		this.#check(table);
		return deleted;
	}

	ids(type: ResourceType): ID[] {
		const ids: ID[] = [];
		for (const { resource } of this.#tableOfType(type).entries()) {
			if (resource.id !== undefined) {
				ids.push(resource.id);
			}
		}
		return ids;
	}

	size(type: ResourceType): number {
		return this.#tableOfType(type).size;
	}

	stats(): TypeStats[] {
		return Array.from(this.#tables.values(), (table) => ({
			type: table.type.key,
			size: table.size,
			indexes: table.indexes.map(({ definition, tree }) => ({
				name: definition.name,
				keys: tree.size,
			})),
		}));
	}

	source(target: ResourceType | AnyIndex): Source {
		return this.#sources.get(target) ?? this.#otherSource(target);
	}

	/** Types are looked up by family, so the target need not be the declared object. */
	#otherSource(target: ResourceType | AnyIndex): Source {
		if ("keys" in target) {
			throw new CacheError(`the cache has no index "${target.name}" of ${target.type.key}`);
		}
		const table = this.#tableOfType(target);
		const same = target.schema.typeName === table.type.schema.typeName;
		return new IdSource(table, same ? table.type : target);
	}

	#tableOfType(type: ResourceType): Table {
		const table = this.#tables.get(type.family);
		if (table === undefined) {
			throw new CacheError(`the cache does not contain the type ${type.key}`);
		}
		return table;
	}

	#tableOf(id: Partial<ResourceName> | undefined): Table {
		const last = this.#last?.type.type;
		if (this.#last && last?.kind === id?.type?.kind && last?.group === id?.type?.group) {
			return this.#last;
		}
		const table = id?.type && this.#tables.get(familyKey(id.type));
		this.#last = table;
		if (table === undefined) {
			throw new CacheError(`the cache does not contain the type of ${describe(id)}`);
		}
		return table;
	}

	#check(table: Table): void {
		if (this.#validate) {
			validateTable(table);
		}
	}
}
