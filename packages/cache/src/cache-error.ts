import type { ResourceName } from "@plinth/resource";
import { displayName } from "@plinth/resource";

/** A cache was declared or used incorrectly, or the code of an index or a query failed. */
export class CacheError extends Error {
	override readonly name = "CacheError";
}

/** What an error says of the index. */
interface NamedIndex {
	readonly name: string;
	readonly type: { readonly key: string };
}

/** An index failed on a resource or on an argument; the cache is unchanged. */
export class IndexError extends CacheError {
	/** The name of the index. */
	readonly index: string;
	/** The key of the indexed type: `demo.v2.Album`. */
	readonly type: string;

	constructor(index: NamedIndex, reason: string, options?: ErrorOptions) {
		super(`index "${index.name}" of ${index.type.key}: ${reason}`, options);
		this.index = index.name;
		this.type = index.type.key;
	}
}

/** The message of a thrown value. */
export function reason(thrown: unknown): string {
	return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The display name of a resource whose ID may be incomplete. */
export function describe(id: Partial<ResourceName> | undefined): string {
	return typeof id?.name === "string"
		? displayName({ ...id, name: id.name })
		: "resource without an ID";
}
