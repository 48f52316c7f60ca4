import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { Edition, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { ForwardReader } from "./forward-reader.ts";
import { notCovered } from "./not-covered.ts";
import { hasOwnForm } from "./own-form.ts";
import { SourceText, tagOf, wireType } from "./source-text.ts";

/**
 * Decodes a message.
 *
 * @returns the message; `undefined` if the bytes must be passed to `fromBinary`, which decodes them or throws a precise
 * error.
 */
export type Decoder = (bytes: Uint8Array) => Message | undefined;

/** Options of a decoder. */
export interface DecoderOptions {
	/**
	 * Whether `bytes` fields are copies, so that the message shares no memory with the bytes that it was decoded from.
	 * Otherwise, they are views of those bytes, as in messages that `fromBinary` returns.
	 */
	readonly copiesBytes: boolean;
}

/**
 * Returns a function with the same result as `fromBinary(schema, bytes)`. It is generated for the schema, and therefore
 * costs less than `fromBinary`.
 *
 * It covers the types of fields that `compileEncoder` covers. It leaves a message to `fromBinary` if the message, or one
 * nested in it, has any of these:
 *
 * - another field, known or unknown, or a map of enums with an entry;
 * - a type that is defined with proto2 or an edition;
 * - an integer or an enum value that is negative, or an integer of 2^32 or more;
 * - a message field that occurs twice and is not a list, or a `oneof` that is set twice;
 * - a map entry that is not a key followed by a value;
 * - `__proto__` as the name of a field or as a key of a map;
 * - more than 50 levels of nested messages;
 * - malformed bytes.
 */
export function compileDecoder(schema: DescMessage, options: DecoderOptions): Decoder {
	return generate(schema, options).decode;
}

/**
 * Like `compileDecoder`, but returns `undefined` if the message type, or a type nested in it, has a field that is not
 * covered, or if the process forbids the compilation of strings. A decoder for such a type would often read a part of a
 * message in vain before `fromBinary` reads the whole message.
 */
export function compileCompleteDecoder(
	schema: DescMessage,
	options: DecoderOptions,
): Decoder | undefined {
	const { decode, isComplete } = generate(schema, options);
	return isComplete ? decode : undefined;
}

function generate(
	schema: DescMessage,
	{ copiesBytes }: DecoderOptions,
): { readonly decode: Decoder; readonly isComplete: boolean } {
	const readBytes = copiesBytes ? "copy" : "view";
	const text = new SourceText((each, within) => readMessage(each, within, readBytes));
	const read = text.compile(schema, { reader, notCovered, noBytes });
	if (typeof read !== "function") {
		return { decode: () => undefined, isComplete: false };
	}
	const decode: Decoder = (bytes) => {
		reader.start(bytes);
		try {
			return read(bytes.byteLength, 0);
		} catch (failure) {
			if (failure === notCovered) {
				return undefined;
			}
			throw failure;
		} finally {
			reader.stop();
		}
	};
	return { decode, isComplete: text.isComplete };
}

/** The method of the reader that reads `bytes` fields. */
type ReadBytes = "copy" | "view";

/** Shared by all calls, which never overlap: decoding is synchronous, and calls no code of its users. */
const reader = new ForwardReader();

/** The zero value of all `bytes` fields. */
const noBytes = new Uint8Array(0);

/** Messages that are nested more deeply are left to `fromBinary`, which has a limit of its own. */
const deepest = 50;

const leave = "throw notCovered;";

/** The function that reads a message, up to the offset `limit`, and returns it. */
function readMessage(schema: DescMessage, text: SourceText, readBytes: ReadBytes): string {
	const name = text.nameOf(schema);
	const hasProto = schema.members.some(({ localName }) => localName === "__proto__");
	if (schema.file.edition !== Edition.EDITION_PROTO3 || hasProto) {
		text.isComplete = false;
		return `function ${name}() { ${leave} }`;
	}
	const initial: string[] = [`$typeName: ${JSON.stringify(schema.typeName)}`];
	const variables: string[] = [];
	const assignments: string[] = [];
	for (const member of schema.members) {
		const key = JSON.stringify(member.localName);
		const variable = `v${variables.length}`;
		const zero = member.kind === "oneof" ? "{ case: undefined }" : zeroOf(member);
		variables.push(`${variable} = ${zero ?? "undefined"}`);
		if (zero === undefined) {
			assignments.push(`if (${variable} !== undefined) message[${key}] = ${variable};`);
		} else {
			initial.push(`${key}: ${variable}`);
		}
	}
	const variableOf = (field: DescField) => `v${schema.members.indexOf(field.oneof ?? field)}`;
	return `function ${name}(limit, depth) {
	if (depth > ${deepest}) ${leave}
	${variables.length === 0 ? "" : `let ${variables.join(", ")};`}
	while (reader.position < limit) {
		switch (reader.uint32()) {
			${schema.fields.map((field) => readField(field, variableOf(field), text, readBytes)).join("\n")}
			default: ${leave}
		}
	}
	if (reader.position !== limit) ${leave}
	const message = { ${initial.join(", ")} };
	${assignments.join("\n\t")}
	return message;
}`;
}

/** An expression for the value of a field that is not in the bytes; `undefined` if the message has no such property. */
function zeroOf(field: DescField): string | undefined {
	if (field.fieldKind === "list") {
		return "[]";
	}
	if (field.fieldKind === "map") {
		return "{}";
	}
	if (field.fieldKind === "message" || field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
		return undefined;
	}
	if (field.enum !== undefined) {
		return String(field.enum.values[0]?.number ?? 0);
	}
	switch (field.scalar) {
		case ScalarType.STRING:
			return '""';
		case ScalarType.BYTES:
			return "noBytes";
		case ScalarType.BOOL:
			return "false";
		default:
			return isLong(field) ? (isLongString(field) ? '"0"' : "0n") : "0";
	}
}

/** Whether the value has 64 bits. */
function isLong({ scalar }: DescField): boolean {
	return (
		scalar === ScalarType.INT64 ||
		scalar === ScalarType.UINT64 ||
		scalar === ScalarType.SINT64 ||
		scalar === ScalarType.FIXED64 ||
		scalar === ScalarType.SFIXED64
	);
}

/** Whether a value of 64 bits is a string, by the option `jstype`, and not a `bigint`. */
function isLongString(field: DescField): boolean {
	return "longAsString" in field && field.longAsString;
}

/** The case, in the switch over tags, that reads a field; empty if the field is not covered. */
function readField(
	field: DescField,
	variable: string,
	text: SourceText,
	readBytes: ReadBytes,
): string {
	const limit = field.fieldKind === "map" ? "entryEnd" : "limit";
	const value = readValue(field, limit, text, readBytes);
	if (value === undefined || !isCovered(field, value[0])) {
		text.isComplete = false;
		return "";
	}
	if (field.fieldKind === "map") {
		return readMap(field, variable, value);
	}
	const [type, expression] = value;
	const once = field.fieldKind === "message" ? `if (${variable} !== undefined) ${leave}` : "";
	if (field.fieldKind === "list") {
		return caseOf(field, type, `${variable}.push(${expression});`);
	}
	if (field.oneof !== undefined) {
		return caseOf(
			field,
			type,
			`if (${variable}.case !== undefined) ${leave}
				${variable} = { case: ${JSON.stringify(field.localName)}, value: ${expression} };`,
		);
	}
	return caseOf(field, type, `${once}\n\t\t\t\t${variable} = ${expression};`);
}

function caseOf({ number }: DescField, type: number, statements: string): string {
	return `case ${tagOf(number, type)}: {
				${statements}
				break;
			}`;
}

/**
 * Whether a field that is a list or a map is covered, given that its values are: of lists, those whose elements have
 * lengths, because all others are packed; of maps, those with string keys and without enums.
 *
 * @param type - the wire type of the values.
 */
function isCovered(field: DescField, type: number): boolean {
	if (field.fieldKind === "map") {
		return field.mapKey === ScalarType.STRING && field.mapKind !== "enum";
	}
	return field.fieldKind !== "list" || type === wireType.lengthDelimited;
}

function readMap(field: DescField, variable: string, [type, expression]: ReadValue): string {
	return caseOf(
		field,
		wireType.lengthDelimited,
		`const entryEnd = reader.end(limit);
				if (reader.uint32() !== ${tagOf(1, wireType.lengthDelimited)}) ${leave}
				const key = reader.string(entryEnd);
				if (key === "__proto__" || reader.uint32() !== ${tagOf(2, type)}) ${leave}
				${variable}[key] = ${expression};
				if (reader.position !== entryEnd) ${leave}`,
	);
}

/** The wire type of a value, and an expression that reads the value. */
type ReadValue = readonly [type: number, expression: string];

/**
 * How a value of a field is read; `undefined` if its type is not covered.
 *
 * @param limit - the variable with the offset that the value may not exceed.
 */
function readValue(
	field: DescField,
	limit: string,
	text: SourceText,
	readBytes: ReadBytes,
): ReadValue | undefined {
	if (field.message !== undefined) {
		return hasOwnForm(field.message) || ("delimitedEncoding" in field && field.delimitedEncoding)
			? undefined
			: [
					wireType.lengthDelimited,
					`${text.nameOf(field.message)}(reader.end(${limit}), depth + 1)`,
				];
	}
	if (field.enum !== undefined) {
		return field.enum.open ? [wireType.varint, "reader.int32()"] : undefined;
	}
	switch (field.scalar) {
		case ScalarType.STRING:
			return [wireType.lengthDelimited, `reader.string(${limit})`];
		case ScalarType.BYTES:
			return [wireType.lengthDelimited, `reader.${readBytes}(${limit})`];
		case ScalarType.BOOL:
			return [wireType.varint, "reader.boolean()"];
		case ScalarType.INT32:
			return [wireType.varint, "reader.int32()"];
		case ScalarType.UINT32:
			return [wireType.varint, "reader.uint32()"];
		case ScalarType.INT64:
			return isLongString(field) ? undefined : [wireType.varint, "BigInt(reader.uint32())"];
		default:
			return undefined;
	}
}
