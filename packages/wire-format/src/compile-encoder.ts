import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { BackwardWriter } from "./backward-writer.ts";
import { notCovered } from "./not-covered.ts";
import { hasOwnForm } from "./own-form.ts";
import { property, SourceText, tagOf, wireType } from "./source-text.ts";

/**
 * Encodes a message.
 *
 * @returns the bytes; `undefined` if the message must be passed to `toBinary`, which encodes it or throws a precise
 * error.
 */
export type Encoder = (
	message: Message,
	options?: EncodeOptions,
) => Uint8Array<ArrayBuffer> | undefined;

/** Options of one call of an encoder. */
export interface EncodeOptions {
	/** How many zero bytes to put before the message, as room for the head of an envelope; none if absent. */
	readonly zeros?: number;
	/**
	 * Whether the bytes get memory of their own, so that they may be kept for long. If false or absent, they may be a slice
	 * of a larger block of Node's buffer pool, which stays in memory as long as any of its slices.
	 */
	readonly isLasting?: boolean;
}

/**
 * Returns a function with the same result as `toBinary(schema, message)`. It is generated for the schema, and therefore
 * costs less than `toBinary`.
 *
 * It covers `string`, `bytes`, `bool`, `int32`, `uint32`, `int64`, enums and messages: as fields, `optional` or not, as
 * members of a `oneof`, and as values of maps with string keys. It also covers lists of strings, `bytes` and messages. It leaves a
 * message to `toBinary` if the message, or one nested in it, has any of these:
 *
 * - a field of another kind that is set, or a field of another type of 64-bit integers, set or not;
 * - a scalar or enum whose default is not that of its type;
 * - a field of type `google.protobuf.Struct`, or of a wrapper such as `google.protobuf.StringValue`, that is set;
 * - unknown fields, or a value of a wrong type.
 */
export function compileEncoder(schema: DescMessage): Encoder {
	const write = new SourceText(writeMessage).compile(schema, { writer, notCovered });
	if (typeof write !== "function") {
		return () => undefined;
	}
	return (message, { zeros = 0, isLasting = false } = {}) => {
		try {
			write(message);
			return writer.finish(zeros, isLasting);
		} catch (failure) {
			writer.clear();
			if (failure === notCovered) {
				return undefined;
			}
			throw failure;
		}
	};
}

/** Shared by all calls, which never overlap: encoding is synchronous, and messages are plain data. */
const writer = new BackwardWriter();

const leave = "throw notCovered;";

/** The function that writes the fields of a message, the one with the highest number first. */
function writeMessage(schema: DescMessage, text: SourceText): string {
	const fields = schema.fields.toSorted((a, b) => b.number - a.number);
	return `function ${text.nameOf(schema)}(message) {
	if (typeof message !== "object" || message === null || message.$unknown !== undefined ||
		message.$typeName !== ${JSON.stringify(schema.typeName)}) ${leave}
	let value;
	${fields.map((field) => writeField(field, text)).join("\n")}
}`;
}

/** Statements that write a field if it is set. */
function writeField(field: DescField, text: SourceText): string {
	const read = `value = ${property("message", field.localName)};`;
	switch (field.fieldKind) {
		case "map":
			return writeMap(field, text);
		case "list":
			return `${read}
	if (!Array.isArray(value)) ${leave}
	for (let index = value.length - 1; index >= 0; index--) {
		const element = value[index];
		${isPacked(field) ? leave : writeValue(field, "element", text)}
	}`;
	}
	if (field.oneof !== undefined) {
		return `value = ${property("message", field.oneof.localName)};
	if (typeof value !== "object" || value === null) ${leave}
	if (value.case === ${JSON.stringify(field.localName)}) {
		const chosen = value.value;
		${writeValue(field, "chosen", text)}
	}`;
	}
	if (field.fieldKind === "message") {
		const isRequired = field.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
		return `${read}
	if (value !== undefined) {
		${writeValue(field, "value", text)}
	}${isRequired ? ` else ${leave}` : ""}`;
	}
	if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
		// Defaults are properties of the prototype.
		return `${read}
	if (value !== undefined) {
		if (!Object.hasOwn(message, ${JSON.stringify(field.localName)})) ${leave}
		${writeValue(field, "value", text)}
	}`;
	}
	return `${read}
	if (${isSet(field)}) {
		${writeValue(field, "value", text)}
	}`;
}

/** The condition for writing a field without presence: `value` is not the zero value. Values of a wrong type meet it. */
function isSet(field: DescField): string {
	if (field.enum !== undefined) {
		return `value !== ${field.enum.values[0]?.number ?? 0} && value !== undefined`;
	}
	switch (field.scalar) {
		case ScalarType.STRING:
			return 'value !== "" && value !== undefined';
		case ScalarType.BYTES:
			return "value !== undefined && !(value instanceof Uint8Array && value.byteLength === 0)";
		case ScalarType.BOOL:
			return "value !== false && value !== undefined";
		case ScalarType.INT64:
			return "value !== 0n && value !== undefined";
		default:
			return "value !== 0 && value !== undefined";
	}
}

function writeMap(field: DescField & { readonly fieldKind: "map" }, text: SourceText): string {
	const write =
		field.mapKey === ScalarType.STRING
			? `const entry = value[key];
			const entryEnd = writer.length;
			${writeValue(field, "entry", text, 2)}
			writer.string(key, ${tagOf(1, wireType.lengthDelimited)});
			writer.lengthSince(entryEnd, ${tagOf(field.number, wireType.lengthDelimited)});`
			: leave;
	return `value = ${property("message", field.localName)};
	if (typeof value !== "object" || value === null) ${leave}
	{
		const keys = Object.keys(value);
		for (let index = keys.length - 1; index >= 0; index--) {
			const key = keys[index];
			${write}
		}
	}`;
}

/**
 * Statements that write a value, its length if it has one, and its tag.
 *
 * @param value - an expression for the value.
 * @param number - the field's number on the wire; 2 for the value of a map entry.
 */
function writeValue(
	field: DescField,
	value: string,
	text: SourceText,
	number = field.number,
): string {
	const delimited = tagOf(number, wireType.lengthDelimited);
	const varint = tagOf(number, wireType.varint);
	if (field.message !== undefined) {
		if (hasOwnForm(field.message) || ("delimitedEncoding" in field && field.delimitedEncoding)) {
			return leave;
		}
		return `{
			const end = writer.length;
			${text.nameOf(field.message)}(${value});
			writer.lengthSince(end, ${delimited});
		}`;
	}
	const unless = (isValid: string, write: string) => `if (!(${isValid})) ${leave}\n\t\t${write}`;
	const isInt32 = `typeof ${value} === "number" && (${value} | 0) === ${value}`;
	if (field.enum !== undefined) {
		return unless(isInt32, `writer.int32(${value}, ${varint});`);
	}
	switch (field.scalar) {
		case ScalarType.STRING:
			return unless(`typeof ${value} === "string"`, `writer.string(${value}, ${delimited});`);
		case ScalarType.BYTES:
			return unless(`${value} instanceof Uint8Array`, `writer.bytes(${value}, ${delimited});`);
		case ScalarType.BOOL:
			return unless(`typeof ${value} === "boolean"`, `writer.int32(${value} ? 1 : 0, ${varint});`);
		case ScalarType.INT32:
			return unless(isInt32, `writer.int32(${value}, ${varint});`);
		case ScalarType.UINT32:
			return unless(
				`typeof ${value} === "number" && ${value} >>> 0 === ${value}`,
				`writer.uint32(${value}, ${varint});`,
			);
		case ScalarType.INT64:
			return unless(
				`typeof ${value} === "bigint" && BigInt.asIntN(64, ${value}) === ${value}`,
				`writer.int64(${value}, ${varint});`,
			);
		default:
			return leave;
	}
}

/** Whether the elements of a list are packed: written one after the other into a single value. */
function isPacked({ scalar, enum: of }: DescField): boolean {
	const isDelimited = scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
	return of !== undefined || (scalar !== undefined && !isDelimited);
}
