import { ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { DecodeError, decode, gvkKey, type TypeRegistry } from "@plinth/resource";
import { checkPartLimits, checkSize, resourceServiceLimits } from "../requests/limits.ts";
import { checkId } from "../requests/request-checks.ts";
import { MessageRules, RulesFailed } from "../validation/message-rules.ts";
import { checkStatusParts } from "./write-status.ts";

/**
 * Checks copies of resources of other clusters before they are stored: as strictly as what a caller sends, but without the
 * hooks of their types, which are for the writers of originals.
 */
export class CopyCheck {
	readonly #registry: TypeRegistry;
	readonly #rules: MessageRules;

	constructor(registry: TypeRegistry) {
		this.#registry = registry;
		this.#rules = new MessageRules(registry);
	}

	/** Why the copy can't be stored: its shape, type, scope, data, rules or size; `undefined` if it can. */
	problem(copy: Resource): string | undefined {
		try {
			const { type } = checkId({ registry: this.#registry }, copy.id, "id");
			checkPartLimits(copy, "resource");
			const statuses = Object.entries(copy.status);
			if (statuses.length > resourceServiceLimits.statuses) {
				return `status has ${statuses.length} entries, more than ${resourceServiceLimits.statuses}`;
			}
			for (const [key, status] of statuses) {
				checkStatusParts(key, status);
			}
			const { data } = decode(type, copy);
			this.#rules.check(type.schema, data, "data");
			checkSize(copy);
			return undefined;
		} catch (error) {
			if (error instanceof ConnectError) {
				return error.rawMessage;
			}
			if (error instanceof DecodeError) {
				return `data is not a valid ${copy.id?.type === undefined ? "message" : gvkKey(copy.id.type)}`;
			}
			if (error instanceof RulesFailed) {
				return error.message;
			}
			throw error;
		}
	}
}
