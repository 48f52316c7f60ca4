import type { ID } from "@plinth/proto";
import { type DecodeError, nameKey, type ResourceType } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";

/** How many errors are reported individually. */
const maxReported = 10;

/** A report on cached resources whose data their type can't decode. */
export interface UndecodableState {
	readonly count: number;
	/** The errors of up to 10 of them; each names its resource. */
	readonly errors: readonly string[];
}

/**
 * The cached resources of a run whose data could not be decoded when the run tried to.
 *
 * Such a resource is in the cache under its name, so that it is not mistaken for deleted, and reading its
 * data throws the DecodeError. Indexes that need its data omit it, mappers are not called for it, and it is
 * not reconciled, until it is written again, which removes it from this set.
 */
export class UndecodableResources {
	readonly #logger: Logger;
	/** Messages, by family and name. */
	readonly #errors = new Map<string, string>();

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	/** Adds a resource. It is logged once for each cached version. */
	note(type: ResourceType, id: ID, error: DecodeError): void {
		const key = keyOf(type, id);
		if (!this.#errors.has(key)) {
			this.#errors.set(key, error.message);
			this.#logger.error(
				{ type: type.key, key: nameKey(id), err: error },
				"resource can't be decoded and is not reconciled or mapped",
			);
		}
	}

	/** Removes a resource: another version of it is cached, or none. */
	forget(type: ResourceType, id: ID): void {
		if (this.#errors.size > 0) {
			this.#errors.delete(keyOf(type, id));
		}
	}

	state(): UndecodableState {
		return {
			count: this.#errors.size,
			errors: this.#errors.values().take(maxReported).toArray(),
		};
	}
}

function keyOf(type: ResourceType, id: ID): string {
	return `${type.family} ${nameKey(id)}`;
}
