import { type DescField, type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { envelopeHeadBytes, fillHead } from "./envelope.ts";

/** A field that has one message. */
export type MessageField = DescField & { readonly fieldKind: "message" };

/** A message that is embedded in another one. */
export interface Embedded {
	readonly message: Message;
	/** The field of the outer message. */
	readonly field: MessageField;
	/** A copy of the outer message that lacks the field. */
	withoutField(): Message;
}

/**
 * Finds the message that is embedded in the last field of an outer message: messages of streams that consist of a few
 * fields and a shared message, whose bytes are then copied instead of encoded again.
 *
 * The last field is one whose bytes come after those of all others, so that the embedded bytes can be appended: it is a
 * message, and all fields with higher numbers are in the same `oneof`.
 *
 * @returns a function that returns `undefined` for a message without such a field; `undefined` if the type has none.
 */
export function embeddedMessages(
	schema: DescMessage,
): ((outer: Message) => Embedded | undefined) | undefined {
	const last = lastFields(schema);
	if (last.length === 0) {
		return undefined;
	}
	return (outer) => {
		if (outer.$unknown !== undefined) {
			// The bytes of unknown fields come last.
			return undefined;
		}
		for (const field of last) {
			const property = field.oneof?.localName ?? field.localName;
			const value: unknown = Reflect.get(outer, property);
			const message = field.oneof === undefined ? value : chosen(value, field);
			if (isMessage(message)) {
				const absent = field.oneof === undefined ? undefined : { case: undefined };
				return { message, field, withoutField: () => ({ ...outer, [property]: absent }) };
			}
		}
		return undefined;
	};
}

function lastFields({ fields }: DescMessage): readonly MessageField[] {
	return fields.filter(
		(field): field is MessageField =>
			field.fieldKind === "message" &&
			!field.delimitedEncoding &&
			fields.every(
				({ number, oneof }) =>
					number <= field.number || (oneof !== undefined && oneof === field.oneof),
			),
	);
}

function chosen(value: unknown, { localName }: DescField): unknown {
	return typeof value === "object" && value !== null && Reflect.get(value, "case") === localName
		? Reflect.get(value, "value")
		: undefined;
}

/**
 * The envelope of a message.
 *
 * @param outer - the bytes of its other fields.
 * @param inner - the bytes of the message that is embedded in the field.
 */
export function joinBinary(
	outer: Uint8Array,
	{ number }: DescField,
	inner: Uint8Array,
): Uint8Array {
	const tag = (number << 3) | WireType.LengthDelimited;
	const headBytes = varintBytes(tag) + varintBytes(inner.byteLength);
	const bytes = Buffer.allocUnsafe(
		envelopeHeadBytes + outer.byteLength + headBytes + inner.byteLength,
	);
	bytes.set(outer, envelopeHeadBytes);
	let offset = writeVarint(bytes, tag, envelopeHeadBytes + outer.byteLength);
	offset = writeVarint(bytes, inner.byteLength, offset);
	bytes.set(inner, offset);
	fillHead(bytes, 0);
	return bytes;
}

function varintBytes(value: number): number {
	return value < 0x80 ? 1 : Math.ceil((32 - Math.clz32(value)) / 7);
}

/** Returns the offset after the value. */
function writeVarint(bytes: Uint8Array, value: number, offset: number): number {
	let rest = value;
	let at = offset;
	while (rest > 0x7f) {
		bytes[at++] = (rest & 0x7f) | 0x80;
		rest >>>= 7;
	}
	bytes[at] = rest;
	return at + 1;
}

/**
 * The same in JSON.
 *
 * @param name - the name of the field in JSON.
 */
export function joinJson(outer: Uint8Array, name: string, inner: Uint8Array): Uint8Array {
	const isEmpty = outer.byteLength <= "{}".length;
	const head = Buffer.from(`${isEmpty ? "" : ","}${JSON.stringify(name)}:`);
	const bytes = Buffer.concat([emptyHead, outer.subarray(0, -1), head, inner, closingBrace]);
	fillHead(bytes, 0);
	return bytes;
}

const emptyHead = new Uint8Array(envelopeHeadBytes);

const closingBrace = Buffer.from("}");
