import type { Decoded } from "@plinth/resource";
import { CacheError } from "../cache-error.ts";
import type { AnyIndex } from "../index-definition.ts";
import type { Source } from "../source.ts";
import { concatenated } from "./concatenated.ts";
import { IndexSource } from "./index-source.ts";
import type { RegionalTables } from "./regional-tables.ts";

/** The resources of a type by ID, for readers of a region: theirs unless an argument names another one. */
export class RegionalIdSource implements Source {
	readonly #ids: Source;
	readonly #region: string;

	constructor(ids: Source, region: string) {
		this.#ids = ids;
		this.#region = region;
	}

	get([id]: readonly unknown[]): Decoded | undefined {
		return this.#ids.get([this.#inRegion(id)]);
	}

	list([prefix = {}]: readonly unknown[]): Decoded[] {
		return this.#ids.list([this.#inRegion(prefix)]);
	}

	iterate([prefix = {}]: readonly unknown[]): IteratorObject<Decoded, undefined> {
		return this.#ids.iterate([this.#inRegion(prefix)]);
	}

	parents([id]: readonly unknown[]): Decoded[] {
		return this.#ids.parents([this.#inRegion(id)]);
	}

	#inRegion(reference: unknown): unknown {
		if (typeof reference !== "object" || reference === null) {
			return reference;
		}
		return "region" in reference && reference.region
			? reference
			: { ...reference, region: this.#region };
	}
}

/** A declared index, for readers of a region. */
export class RegionalIndexSource implements Source {
	readonly #tables: RegionalTables;
	readonly #definition: AnyIndex;
	readonly #region: string;

	constructor(tables: RegionalTables, definition: AnyIndex, region: string) {
		this.#tables = tables;
		this.#definition = definition;
		this.#region = region;
	}

	get(args: readonly unknown[]): Decoded | undefined {
		for (const source of this.#sources()) {
			const item = source.get(args);
			if (item !== undefined) {
				return item;
			}
		}
		return undefined;
	}

	list(args: readonly unknown[]): Decoded[] {
		return this.#sources().flatMap((source) => source.list(args));
	}

	iterate(args: readonly unknown[]): IteratorObject<Decoded, undefined> {
		return concatenated(this.#sources().map((source) => source.iterate(args)));
	}

	parents(args: readonly unknown[]): Decoded[] {
		return this.#sources().flatMap((source) => source.parents(args));
	}

	#sources(): readonly IndexSource[] {
		return this.#tables.select(this.#region).map(({ indexes }) => {
			const index = indexes.find(({ definition }) => definition === this.#definition);
			if (index === undefined) {
				throw new CacheError(`the cache has no index "${this.#definition.name}"`);
			}
			return new IndexSource(index);
		});
	}
}
