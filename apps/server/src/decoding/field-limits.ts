import type { DescMethod, Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { countBinaryFields } from "./count-binary-fields.ts";
import { countJsonValues } from "./count-json-values.ts";
import { type MessagePlan, MessagePlans } from "./message-plan.ts";

/** How a message is encoded. */
export type MessageFormat = "binary" | "json";

/** Options of the limits on fields. */
export interface FieldLimitsOptions {
	/** Messages that an Any of a request may contain. */
	readonly registry: Registry;
	/** Fields of one request message, for methods without their own limit. */
	readonly messageFields: number;
	readonly methods: ReadonlyMap<DescMethod, number>;
}

/** The limit of one method on the fields of a message. */
export interface FieldLimit {
	/** A message of at most this many bytes is within the limit in any case. */
	readonly freeBytes: number;
	/** @throws ConnectError ResourceExhausted if the message exceeds the limit. */
	check(message: Uint8Array, format: MessageFormat): void;
}

/** Limits on the number of fields in a request message, which bound the cost of decoding it. */
export class FieldLimits {
	readonly #options: FieldLimitsOptions;
	readonly #plans: MessagePlans;
	readonly #limits = new Map<DescMethod, FieldLimit>();

	constructor(options: FieldLimitsOptions) {
		this.#options = options;
		this.#plans = new MessagePlans(options.registry);
	}

	of(method: DescMethod): FieldLimit {
		let limit = this.#limits.get(method);
		if (limit === undefined) {
			limit = this.#create(method);
			this.#limits.set(method, limit);
		}
		return limit;
	}

	#create(method: DescMethod): FieldLimit {
		const plans = this.#plans;
		const own = this.#options.methods.get(method);
		const most = own ?? this.#options.messageFields;
		// Compiled when the first message is scanned: most methods never see one that is large.
		let plan: MessagePlan | undefined;
		let fieldMasks: boolean | undefined;
		return {
			// A field, or an element of a packed one, has at least one byte, and a JSON value two.
			freeBytes: most,
			check: (message, format) => {
				plan ??= plans.of(method.input);
				fieldMasks ??= plans.mayHoldFieldMask(method.input);
				const count =
					format === "json"
						? countJsonValues(message, most, fieldMasks)
						: countBinaryFields(plans, plan, message, most);
				if (count > most) {
					throw tooManyFields(method, most, own !== undefined);
				}
			},
		};
	}
}

function tooManyFields(method: DescMethod, most: number, isOwn: boolean): ConnectError {
	const setting = isOwn ? "the limit of this method" : "limits.messageFields";
	return new ConnectError(
		`a message of ${method.parent.typeName}/${method.name} has more than ${most} fields (${setting}): split the request`,
		Code.ResourceExhausted,
	);
}
