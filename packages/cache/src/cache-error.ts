import type { ResourceName } from "@plinth/resource";
import { displayName } from "@plinth/resource";

/** A cache was declared or used wrongly, or the code of an index or of a query failed. */
export class CacheError extends Error {
	override readonly name = "CacheError";
}

/** What an error says of the index. */
interface NamedIndex {
	readonly name: string;
	readonly type: { readonly key: string };
}

/** The code of an index failed on a resource or on an argument; nothing has changed. */
export class IndexError extends CacheError {
	/** The name of the index. */
	readonly index: string;
	/** The type whose index it is: `demo.v2.Album`. */
	readonly type: string;

	constructor(index: NamedIndex, why: string, options?: ErrorOptions) {
		super(`index "${index.name}" of ${index.type.key}: ${why}`, options);
		this.index = index.name;
		this.type = index.type.key;
	}
}

/** What an error says of whatever was thrown. */
export function reason(thrown: unknown): string {
	return thrown instanceof Error ? thrown.message : String(thrown);
}

/** How a message names a resource that may lack the parts of a name. */
export function describe(id: Partial<ResourceName> | undefined): string {
	return typeof id?.name === "string"
		? displayName({ ...id, name: id.name })
		: "resource without an ID";
}
