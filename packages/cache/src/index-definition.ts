import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import { CacheError, IndexError } from "./cache-error.ts";
import type { Key, KeyQuery } from "./key.ts";

/** How an index derives the keys of resources, and the key for a reader's arguments. */
export interface IndexFunctions<Desc extends DescMessage, Args extends readonly unknown[]> {
	/**
	 * The keys of a resource: none, one or many. It must depend only on its argument, and must not modify
	 * it.
	 */
	keys(item: Decoded<Desc>): readonly Key[];
	/** The key, or the prefix of keys, for the arguments of a reader. */
	key(...args: Args): KeyQuery;
	/** Whether resources without a key are refused. */
	readonly required?: boolean;
}

/**
 * The definition of a secondary index of one type. It has no state: any number of caches can be declared
 * with it.
 */
export interface Index<Desc extends DescMessage, Args extends readonly unknown[]>
	extends IndexFunctions<Desc, Args> {
	readonly name: string;
	readonly type: ResourceType<Desc>;
	readonly required: boolean;
}

/** An index of any type, with any arguments. */
export type AnyIndex = Index<DescMessage, readonly unknown[]>;

/** The name of the index by ID, which every type has. */
const idIndexName = "id";

/**
 * Declares an index.
 *
 * @throws CacheError if the name is empty or `id`, or a function is missing.
 */
export function defineIndex<Desc extends DescMessage, Args extends readonly unknown[]>(
	name: string,
	type: ResourceType<Desc>,
	functions: IndexFunctions<Desc, Args>,
): Index<Desc, Args> {
	const { required = false } = functions;
	const declared: Index<Desc, Args> = {
		name,
		type,
		keys: functions.keys,
		key: functions.key,
		required,
	};
	assertIndex(declared);
	return Object.freeze(declared);
}

/** @throws CacheError if a part of the index is missing, or its name is reserved. */
export function assertIndex(index: AnyIndex): void {
	if (!index.name) {
		throw new CacheError(`an index of ${index.type.key} has no name`);
	}
	if (index.name === idIndexName) {
		throw new IndexError(index, "its name is reserved for the index by ID");
	}
	if (typeof index.keys !== "function") {
		throw new IndexError(index, "the function `keys` is missing");
	}
	if (typeof index.key !== "function") {
		throw new IndexError(index, "the function `key` is missing");
	}
}
