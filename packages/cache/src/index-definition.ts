import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import { CacheError, IndexError } from "./cache-error.ts";
import type { Key, KeyQuery } from "./key.ts";

/** How an index finds the keys of resources, and the key that a reader means. */
export interface IndexFunctions<Desc extends DescMessage, Args extends readonly unknown[]> {
	/**
	 * The keys of a resource: none, one or many. It must depend on nothing but its argument, and
	 * must not change it.
	 */
	keys(item: Decoded<Desc>): readonly Key[];
	/** The key, or the prefix of keys, that the arguments of a reader mean. */
	key(...args: Args): KeyQuery;
	/** Whether a resource without a key is refused. */
	readonly required?: boolean;
}

/**
 * A way to find resources of one type other than by their ID. It holds no state: any number of
 * caches may be declared with it.
 */
export interface Index<Desc extends DescMessage, Args extends readonly unknown[]>
	extends IndexFunctions<Desc, Args> {
	readonly name: string;
	readonly type: ResourceType<Desc>;
	readonly required: boolean;
}

/** An index of whatever type, with whatever arguments. */
export type AnyIndex = Index<DescMessage, readonly unknown[]>;

/** The name of the index that every type has by itself. */
export const idIndexName = "id";

/**
 * Declares an index.
 *
 * @throws CacheError where the name is empty or `id`, or a function is missing.
 */
export function index<Desc extends DescMessage, Args extends readonly unknown[]>(
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

/** @throws CacheError where a part of the index is missing, or its name is not its own. */
export function assertIndex(index: AnyIndex): void {
	if (!index.name) {
		throw new CacheError(`an index of ${index.type.key} has no name`);
	}
	if (index.name === idIndexName) {
		throw new IndexError(index, "every type has an index of that name by itself");
	}
	if (typeof index.keys !== "function") {
		throw new IndexError(index, "the function `keys` is missing");
	}
	if (typeof index.key !== "function") {
		throw new IndexError(index, "the function `key` is missing");
	}
}
