import {
	createRegistry,
	type DescField,
	type DescMessage,
	fromBinary,
	type Message,
	ScalarType,
	toBinary,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { arbitraryMessage, torture, tortureCloners } from "@plinth/protoc-gen-clone/testing";
import fc from "fast-check";
import { countBinaryFields } from "./count-binary-fields.ts";
import { type MessagePlan, MessagePlans } from "./message-plan.ts";

const { ListsSchema, WellKnownSchema } = torture;

export const registry = createRegistry(ListsSchema, WellKnownSchema, AnySchema, StructSchema);
export const plans = new MessagePlans(registry);

export function count(
	schema: DescMessage,
	bytes: Uint8Array,
	limit = Number.POSITIVE_INFINITY,
): number {
	return countBinaryFields(plans, plans.of(schema), bytes, limit);
}

/**
 * The number of values in a decoded message, including those in values of Any. With `isCanonical`, as they
 * count on the wire: a packed field by its bytes.
 */
function valuesIn(message: ReflectMessage, isCanonical: boolean): number {
	let values = message.message.$unknown?.length ?? 0;
	for (const field of message.fields) {
		if (message.isSet(field)) {
			values += valuesOf(message, field, isCanonical);
		}
	}
	if (message.desc.typeName === AnySchema.typeName) {
		const held = heldIn(message.message as Any);
		values += held === undefined ? 0 : valuesIn(held, isCanonical);
	}
	return values;
}

function heldIn(any: Any): ReflectMessage | undefined {
	const desc = registry.getMessage(any.typeUrl.slice(any.typeUrl.lastIndexOf("/") + 1));
	try {
		return desc && reflect(desc, fromBinary(desc, any.value));
	} catch {
		return undefined;
	}
}

function valuesOf(message: ReflectMessage, field: DescField, isCanonical: boolean): number {
	switch (field.fieldKind) {
		case "message":
			return 1 + valuesIn(message.get(field), isCanonical);
		case "list": {
			let values = 0;
			for (const item of message.get(field)) {
				values +=
					field.listKind === "message" ? 1 + valuesIn(item as ReflectMessage, isCanonical) : 1;
			}
			return field.packed && isCanonical ? packedSize(field, [...message.get(field)]) : values;
		}
		case "map": {
			let values = 0;
			for (const item of message.get(field).values()) {
				values +=
					3 + (field.mapKind === "message" ? valuesIn(item as ReflectMessage, isCanonical) : 0);
			}
			return values;
		}
		default:
			return 1;
	}
}

/** The count of a packed field: its bytes, divided by the width of an element. */
function packedSize(field: DescField & { fieldKind: "list" }, items: readonly unknown[]): number {
	const writer = new BinaryWriter();
	const type = field.listKind === "enum" ? ScalarType.INT32 : field.scalar;
	for (const item of items) {
		switch (type) {
			case ScalarType.INT32:
				writer.int32(Number(item));
				break;
			case ScalarType.UINT32:
				writer.uint32(Number(item));
				break;
			case ScalarType.SINT32:
				writer.sint32(Number(item));
				break;
			case ScalarType.INT64:
				writer.int64(BigInt(String(item)));
				break;
			case ScalarType.UINT64:
				writer.uint64(BigInt(String(item)));
				break;
			case ScalarType.SINT64:
				writer.sint64(BigInt(String(item)));
				break;
			default:
				writer.bool(true);
		}
	}
	return writer.finish().length;
}

/** Encoded messages, mangled as a hostile caller might mangle them. */
export function mangled(schema: DescMessage): fc.Arbitrary<Uint8Array> {
	const encoded = arbitraryMessage(schema).map((message) => [...toBinary(schema, message)]);
	const edit = fc.record({
		at: fc.nat(),
		remove: fc.nat(3),
		insert: fc.array(fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 0x80, 0xff)), { maxLength: 3 }),
	});
	return fc
		.tuple(encoded, encoded, fc.array(edit, { maxLength: 4 }))
		.map(([first, second, edits]) => {
			const bytes = [...first, ...second];
			for (const { at, remove, insert } of edits) {
				bytes.splice(at % (bytes.length + 1), remove, ...insert);
			}
			return Uint8Array.from(bytes);
		});
}

/** The messages of the torture protos. */
export const schemas = [...new Set(tortureCloners.map(({ schema }) => schema))];

/** Throws if the count of a random message differs from its number of values. */
export function assertAgrees(schema: DescMessage, runs: number): void {
	fc.assert(
		fc.property(arbitraryMessage(schema), (message) => {
			const counted = count(schema, toBinary(schema, message));
			const held = valuesIn(reflect(schema, message), true);
			if (counted !== held) {
				throw new Error(`counted ${counted} of ${held} values`);
			}
		}),
		{ numRuns: runs },
	);
}

/** Throws if less is counted in mangled messages than is decoded from them. */
export function assertNotLess(schema: DescMessage, runs: number): void {
	fc.assert(
		fc.property(mangled(schema), (bytes) => notLess(plans.of(schema), schema, bytes)),
		{ numRuns: runs },
	);
}

/** Throws if the message that is decoded from the bytes has more than was counted in them. */
export function notLess(plan: MessagePlan, schema: DescMessage, bytes: Uint8Array): void {
	const counted = countBinaryFields(plans, plan, bytes, Number.POSITIVE_INFINITY);
	let decoded: Message;
	try {
		decoded = fromBinary(schema, bytes);
	} catch {
		return;
	}
	const values = decodedValues(schema, decoded);
	if (counted < values) {
		throw new Error(`counted ${counted} of ${values} values`);
	}
}

/** Values of a message that was decoded from arbitrary bytes. */
function decodedValues(schema: DescMessage, message: Message): number {
	try {
		return valuesIn(reflect(schema, message), false);
	} catch {
		return 0;
	}
}
