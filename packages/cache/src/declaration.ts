import type { CacheOptions } from "./cache.ts";
import { CacheError, IndexError } from "./cache-error.ts";
import { assertIndex } from "./index-definition.ts";
import type { Queries } from "./reader.ts";

/** @throws CacheError if the declaration of a cache is invalid. */
export function assertDeclaration(options: CacheOptions<Queries>): void {
	const types = new Map<string, (typeof options.types)[number]>();
	for (const type of options.types) {
		const other = types.get(type.family);
		if (other !== undefined) {
			throw new CacheError(
				other.key === type.key
					? `type ${type.key} is declared twice`
					: `types ${other.key} and ${type.key} differ only in group version: a cache can contain only one of them`,
			);
		}
		types.set(type.family, type);
	}
	const names = new Set<string>();
	for (const index of options.indexes ?? []) {
		assertIndex(index);
		const type = types.get(index.type.family);
		if (type === undefined) {
			throw new IndexError(index, "its type is not declared");
		}
		if (type.schema.typeName !== index.type.schema.typeName) {
			throw new IndexError(index, `the cache declares ${type.key} instead`);
		}
		const name = `${index.type.family} ${index.name}`;
		if (names.has(name)) {
			throw new IndexError(index, "its name is declared twice");
		}
		names.add(name);
	}
	for (const [name, query] of Object.entries(options.queries ?? {})) {
		if (name === "") {
			throw new CacheError("a query has no name");
		}
		if (typeof query !== "function") {
			throw new CacheError(`query "${name}" is not a function`);
		}
	}
}
