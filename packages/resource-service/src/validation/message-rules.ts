import { type DescMessage, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";
import {
	createValidator,
	type Validator,
	type Violation,
	violationsToProto,
} from "@bufbuild/protovalidate";
import { Code, ConnectError } from "@connectrpc/connect";
import type { TypeRegistry } from "@plinth/resource";
import { resourceServiceLimits } from "../requests/limits.ts";
import { rulesRegistry } from "./rules-registry.ts";

/** Field number of the options `(buf.validate.message)`, `(buf.validate.oneof)` and `(buf.validate.field)`. */
const validateOption = 1159;

/** The rules of a message can't be applied: one is invalid, or its evaluation has failed for this message. */
export class RulesFailed extends Error {
	override readonly name = "RulesFailed";
}

/** Enforces the protovalidate rules in the descriptors of types. */
export class MessageRules {
	readonly #registry: TypeRegistry;
	/** Whether a message, or any message that it can contain, has rules. */
	readonly #hasRules = new Map<DescMessage, boolean>();
	#validator: Validator | undefined;

	constructor(registry: TypeRegistry) {
		this.#registry = registry;
	}

	/**
	 * Checks a message against the rules of its descriptor.
	 *
	 * @throws ConnectError InvalidArgument that names all violations, and carries them as a detail. RulesFailed.
	 */
	check<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, path: string): void {
		if (!this.#appliesTo(schema)) {
			return;
		}
		this.#validator ??= createValidator({ registry: rulesRegistry(this.#registry.all()) });
		const result = this.#validator.validate(schema, message);
		if (result.kind === "valid") {
			return;
		}
		if (result.kind === "error") {
			throw new RulesFailed(`the validation rules of ${schema.typeName} can't be applied`, {
				cause: result.error,
			});
		}
		const [value, desc] = violationsToProto(result.violations);
		while (toBinary(desc, value).byteLength > resourceServiceLimits.errorDetailBytes) {
			value.violations.length >>= 1;
		}
		throw new ConnectError(
			result.violations.map((violation) => describe(violation, path)).join("; "),
			Code.InvalidArgument,
			undefined,
			[{ desc, value }],
		);
	}

	#appliesTo(schema: DescMessage): boolean {
		let applies = this.#hasRules.get(schema);
		if (applies === undefined) {
			applies = holdsRules(schema, new Set());
			this.#hasRules.set(schema, applies);
		}
		return applies;
	}
}

function describe(violation: Violation, path: string): string {
	const field = violation.toString();
	const separator = field.indexOf(": ");
	return separator < 0 || violation.field.length === 0
		? `${path} invalid: ${violation.message}`
		: `${path}.${field.slice(0, separator)} invalid: ${violation.message}`;
}

/** Whether the message, or any message that it can contain, has an option of protovalidate. */
function holdsRules(schema: DescMessage, seen: Set<DescMessage>): boolean {
	if (seen.has(schema)) {
		return false;
	}
	seen.add(schema);
	return (
		hasOption(schema.proto.options) ||
		schema.oneofs.some((oneof) => hasOption(oneof.proto.options)) ||
		schema.fields.some(
			(field) =>
				hasOption(field.proto.options) ||
				(field.message !== undefined && holdsRules(field.message, seen)),
		)
	);
}

function hasOption(options: Message | undefined): boolean {
	return options?.$unknown?.some((field) => field.no === validateOption) ?? false;
}
