import {
	create,
	type DescField,
	type DescMessage,
	type Message,
	ScalarType,
} from "@bufbuild/protobuf";
import { isWrapperDesc, StructSchema } from "@bufbuild/protobuf/wkt";
import { MessageReader, notCovered } from "./message-reader.ts";

/**
 * Decodes a message. Its `bytes` fields are copies.
 *
 * @returns `undefined` if the bytes must be passed to `fromBinary`, which decodes them or throws a precise error.
 */
export type Decoder = (bytes: Uint8Array) => Message | undefined;

/**
 * Returns a function with the same result as `fromBinary(schema, bytes)`, except that `bytes` fields are copies, in half of the time: it reads tags and values
 * without objects in between, and does not create short strings again that it has read before.
 *
 * It covers strings, bytes, booleans, integers, open enums, messages, `oneof`, lists and maps with string keys, as
 * encoders usually write them. It leaves other fields, unknown fields, parts of one message that must be merged, and
 * malformed bytes to `fromBinary`.
 */
export function compileDecoder(schema: DescMessage): Decoder {
	const decoder = new Compilation().decoderOf(schema);
	return (bytes) => {
		try {
			return decoder.read(reader.begin(bytes), 1);
		} catch (failure) {
			if (failure === notCovered) {
				return undefined;
			}
			throw failure;
		} finally {
			reader.end();
		}
	};
}

/** Shared by all calls: decoding is synchronous, and runs no code of messages. */
const reader = new MessageReader();

/** Messages in messages; `fromBinary` accepts some more before it throws. */
const deepest = 90;

interface MessageDecoder {
	/** Reads the fields of a message up to the offset of its end. */
	read(end: number, depth: number): Message;
}

/** A message that is being read. */
interface Fields extends Message {
	[name: string]: unknown;
}

/** Reads a value, with its length if it has one. `end` is that of the message. */
type ReadValue = (end: number, depth: number) => unknown;

/** Reads the value of a field, and sets or adds to the field. */
type ReadField = (message: Fields, end: number, depth: number) => void;

const lengthDelimited = 2;
const variableLength = 0;

/** Tags up to this one are found by index, and only these are covered. */
const largestTag = 1_023;

/** Compiles the decoders of messages that may contain each other. */
class Compilation {
	readonly #decoders = new Map<DescMessage, MessageDecoder>();

	decoderOf(schema: DescMessage): MessageDecoder {
		let decoder = this.#decoders.get(schema);
		if (decoder === undefined) {
			const byTag: (ReadField | undefined)[] = [];
			const empty = creatorOf(schema);
			decoder = { read: (end, depth) => readMessage(empty(), byTag, end, depth) };
			this.#decoders.set(schema, decoder);
			for (const field of schema.fields) {
				const [tag, read] = this.#readField(field);
				if (tag <= largestTag) {
					byTag[tag] = read;
				}
			}
		}
		return decoder;
	}

	#readField(field: DescField): readonly [tag: number, read: ReadField] {
		const { localName, number } = field;
		if (field.fieldKind === "map") {
			return [tagOf(number, lengthDelimited), this.#readMap(field)];
		}
		const [wireType, readValue] = this.#valueOf(field);
		const tag = tagOf(number, wireType);
		if (field.fieldKind === "list") {
			return [tag, (message, end, depth) => add(message[localName], readValue(end, depth))];
		}
		if (field.oneof !== undefined) {
			const { localName: group } = field.oneof;
			return [
				tag,
				field.fieldKind === "message"
					? (message, end, depth) => {
							leaveIf(isChosen(message[group], localName));
							message[group] = { case: localName, value: readValue(end, depth) };
						}
					: (message, end, depth) => {
							message[group] = { case: localName, value: readValue(end, depth) };
						},
			];
		}
		return [
			tag,
			field.fieldKind === "message"
				? (message, end, depth) => {
						leaveIf(message[localName] !== undefined);
						message[localName] = readValue(end, depth);
					}
				: (message, end, depth) => {
						message[localName] = readValue(end, depth);
					},
		];
	}

	#readMap(field: DescField & { readonly fieldKind: "map" }): ReadField {
		const { localName } = field;
		const [wireType, readValue] = this.#valueOf(field);
		const keyTag = tagOf(1, lengthDelimited);
		const valueTag = tagOf(2, wireType);
		if (field.mapKey !== ScalarType.STRING) {
			return leave;
		}
		return (message, end, depth) => {
			const entryEnd = reader.endOfValue(end);
			leaveIf(reader.varint32() !== keyTag);
			const key = readString(entryEnd);
			leaveIf(key === "__proto__" || reader.varint32() !== valueTag);
			const value = readValue(entryEnd, depth);
			leaveIf(reader.position !== entryEnd);
			const map: unknown = message[localName];
			if (isObject(map)) {
				map[key] = value;
			}
		};
	}

	/** How a value of the field is read: the field's own, an element of its list, or a value of its map. */
	#valueOf(field: DescField): readonly [wireType: number, read: ReadValue] {
		if (field.message !== undefined) {
			const isSpecial = isWrapperDesc(field.message) || field.message === StructSchema;
			if (isSpecial || ("delimitedEncoding" in field && field.delimitedEncoding)) {
				return [lengthDelimited, leave];
			}
			const decoder = this.decoderOf(field.message);
			return [lengthDelimited, (end, depth) => decoder.read(reader.endOfValue(end), depth + 1)];
		}
		if (field.enum !== undefined) {
			return [variableLength, field.enum.open ? readInt32 : leave];
		}
		switch (field.scalar) {
			case ScalarType.STRING:
				return [lengthDelimited, field.utf8Validation ? readString : leave];
			case ScalarType.BYTES:
				return [lengthDelimited, readBytes];
			case ScalarType.BOOL:
				return [variableLength, readBoolean];
			case ScalarType.INT32:
				return [variableLength, readInt32];
			case ScalarType.UINT32:
				return [variableLength, readUint32];
			case ScalarType.INT64:
			case ScalarType.UINT64:
				return [variableLength, "longAsString" in field && field.longAsString ? leave : readInt64];
			default:
				return [variableLength, leave];
		}
	}
}

function tagOf(number: number, wireType: number): number {
	return ((number << 3) | wireType) >>> 0;
}

/** Reads the fields of a message up to the offset of its end. */
function readMessage(
	message: Fields,
	byTag: readonly (ReadField | undefined)[],
	end: number,
	depth: number,
): Message {
	leaveIf(depth > deepest);
	while (reader.position < end) {
		const read = byTag[reader.varint32()];
		if (read === undefined) {
			throw notCovered;
		}
		read(message, end, depth);
	}
	leaveIf(reader.position !== end);
	return message;
}

/** Returns a function that creates an empty message as `create` does. */
function creatorOf(schema: DescMessage): () => Fields {
	const zero: Message = create(schema);
	if (Object.getPrototypeOf(zero) !== Object.prototype) {
		// Fields with presence have their zero values in a prototype.
		return leave;
	}
	const { typeName } = schema;
	const members = Object.entries(zero)
		.filter(([name]) => name !== "$typeName")
		.map(([name, value]) => new Member(name, value));
	return () => {
		const message: Fields = { $typeName: typeName };
		for (const member of members) {
			message[member.name] = member.zero();
		}
		return message;
	};
}

/** A field that an empty message has, or a `oneof`. */
class Member {
	readonly name: string;
	readonly #value: unknown;
	readonly #kind: "constant" | "list" | "map" | "oneof";

	constructor(name: string, value: unknown) {
		this.name = name;
		this.#value = value;
		if (Array.isArray(value)) {
			this.#kind = "list";
		} else if (isObject(value) && !(value instanceof Uint8Array)) {
			this.#kind = "case" in value ? "oneof" : "map";
		} else {
			this.#kind = "constant";
		}
	}

	/** Its value in a new message. */
	zero(): unknown {
		switch (this.#kind) {
			case "list":
				return [];
			case "map":
				return {};
			case "oneof":
				return { case: undefined };
			default:
				return this.#value;
		}
	}
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

function isChosen(group: unknown, name: string): boolean {
	return isObject(group) && group.case === name;
}

function add(list: unknown, value: unknown): void {
	if (Array.isArray(list)) {
		list.push(value);
	}
}

function leave(): never {
	throw notCovered;
}

function leaveIf(isLeft: boolean): void {
	if (isLeft) {
		throw notCovered;
	}
}

function readString(end: number): string {
	return reader.stringTo(reader.endOfValue(end));
}

function readBytes(end: number): Uint8Array {
	return reader.bytesTo(reader.endOfValue(end));
}

/** Negative values have ten bytes, and are left to `fromBinary`. */
function readInt32(): number {
	return reader.varint32() | 0;
}

function readUint32(): number {
	return reader.varint32();
}

function readInt64(): bigint {
	return reader.varint49();
}

function readBoolean(): boolean {
	return reader.varint32() !== 0;
}
