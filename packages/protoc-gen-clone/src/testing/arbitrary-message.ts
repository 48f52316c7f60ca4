import {
	create,
	type DescField,
	type DescMessage,
	type DescOneof,
	type MessageInitShape,
	type MessageShape,
	ScalarType,
	type UnknownField,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";

/** The maximum nesting depth of random messages. */
const MAX_DEPTH = 3;

/** The number of the first unknown field, higher than any field number of the messages under test. */
const FIRST_UNKNOWN = 400_000;

/**
 * Random messages of a type, created by reflection: optional fields are set or not, required ones always;
 * with unknown fields, `__proto__` among the keys of maps, and messages nested up to three levels deep.
 */
export function arbitraryMessage<Desc extends DescMessage>(
	schema: Desc,
): fc.Arbitrary<MessageShape<Desc>> {
	const known = new Map<string, fc.Arbitrary<unknown>>();

	function message(desc: DescMessage, depth: number): fc.Arbitrary<unknown> {
		const id = `${depth} ${desc.typeName}`;
		let arbitrary = known.get(id);
		if (arbitrary === undefined) {
			arbitrary = newMessage(desc, depth);
			known.set(id, arbitrary);
		}
		return arbitrary;
	}

	function newMessage(desc: DescMessage, depth: number): fc.Arbitrary<unknown> {
		const members: Record<string, fc.Arbitrary<unknown>> = {};
		const required: string[] = [];
		for (const member of desc.members) {
			const arbitrary = member.kind === "oneof" ? oneof(member, depth) : field(member, depth);
			if (arbitrary !== undefined) {
				members[member.localName] = arbitrary;
				if (isRequired(member)) {
					required.push(member.localName);
				}
			}
		}
		return fc
			.tuple(fc.record(members, { requiredKeys: required, noNullPrototype: true }), unknownFields)
			.map(([init, unknown]) => {
				const result = create(desc, init as MessageInitShape<DescMessage>);
				if (unknown !== undefined) {
					result.$unknown = unknown;
				}
				return result;
			});
	}

	function oneof(desc: DescOneof, depth: number): fc.Arbitrary<unknown> {
		const cases = desc.fields.flatMap((member) => {
			const value = field(member, depth);
			return value === undefined
				? []
				: [fc.record({ case: fc.constant(member.localName), value }, { noNullPrototype: true })];
		});
		return fc.oneof(fc.constant({ case: undefined }), ...cases);
	}

	function field(desc: DescField, depth: number): fc.Arbitrary<unknown> | undefined {
		const value = singular(desc, depth);
		if (value === undefined) {
			return undefined;
		}
		switch (desc.fieldKind) {
			case "list":
				return fc.array(value, { maxLength: 3 });
			case "map":
				return fc.dictionary(mapKey(desc.mapKey), value, { maxKeys: 3, noNullPrototype: true });
			default:
				return value;
		}
	}

	function singular(desc: DescField, depth: number): fc.Arbitrary<unknown> | undefined {
		if (desc.enum !== undefined) {
			const numbers = fc.constantFrom(...desc.enum.values.map((value) => value.number));
			return desc.enum.open ? fc.oneof(numbers, fc.integer()) : numbers;
		}
		if (desc.message === undefined) {
			return scalar(desc.scalar, "longAsString" in desc && desc.longAsString);
		}
		if (desc.fieldKind === "message" && !desc.oneof && isWrapperDesc(desc.message)) {
			return scalar(desc.message.fields[0].scalar, false);
		}
		if (
			desc.message.typeName === "google.protobuf.Struct" &&
			desc.parent.typeName !== "google.protobuf.Value"
		) {
			return json;
		}
		if (depth < MAX_DEPTH || isRequired(desc)) {
			return message(desc.message, depth + 1);
		}
		return undefined;
	}

	return message(schema, 0) as fc.Arbitrary<MessageShape<Desc>>;
}

function isRequired(member: DescField | DescOneof): boolean {
	return member.kind === "field" && member.presence === FeatureSet_FieldPresence.LEGACY_REQUIRED;
}

const key = fc.oneof(fc.constantFrom("__proto__", "constructor", "7"), fc.string());

const json = fc.dictionary(
	key,
	fc.jsonValue({ depthSize: "small" }).filter((value) => !Object.is(value, -0)),
	{ maxKeys: 3, noNullPrototype: true },
);

const bytes = fc.oneof(
	fc.uint8Array({ maxLength: 100 }),
	fc.uint8Array({ maxLength: 8 }).map((array) => Buffer.from(array)),
	fc.uint8Array({ minLength: 4, maxLength: 8 }).map((array) => array.subarray(1, 3)),
);

const unknownFields: fc.Arbitrary<UnknownField[] | undefined> = fc.option(
	fc.array(
		fc.record(
			{
				no: fc.integer({ min: FIRST_UNKNOWN, max: FIRST_UNKNOWN + 100 }),
				wireType: fc.constant<WireType>(WireType.LengthDelimited),
				data: bytes.map((content) => new BinaryWriter().bytes(content).finish()),
			},
			{ noNullPrototype: true },
		),
		{ minLength: 1, maxLength: 2 },
	),
	{ nil: undefined, freq: 3 },
);

function mapKey(type: ScalarType): fc.Arbitrary<string> {
	return type === ScalarType.STRING ? key : scalar(type, false).map(String);
}

function scalar(type: ScalarType, longAsString: boolean): fc.Arbitrary<unknown> {
	const long = (range: { min: bigint; max: bigint }) =>
		fc.bigInt(range).map((value) => (longAsString ? value.toString() : value));
	switch (type) {
		case ScalarType.STRING:
			return fc.string();
		case ScalarType.BOOL:
			return fc.boolean();
		case ScalarType.BYTES:
			return bytes;
		case ScalarType.DOUBLE:
			return fc.double({ noNaN: true });
		case ScalarType.FLOAT:
			return fc.float({ noNaN: true });
		case ScalarType.INT32:
		case ScalarType.SINT32:
		case ScalarType.SFIXED32:
			return fc.integer();
		case ScalarType.UINT32:
		case ScalarType.FIXED32:
			return fc.integer({ min: 0, max: 2 ** 32 - 1 });
		case ScalarType.INT64:
		case ScalarType.SINT64:
		case ScalarType.SFIXED64:
			return long({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
		case ScalarType.UINT64:
		case ScalarType.FIXED64:
			return long({ min: 0n, max: 2n ** 64n - 1n });
	}
}
