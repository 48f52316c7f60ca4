import {
	create,
	type DescField,
	type DescMessage,
	type MessageShape,
	ScalarType,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { AnySchema, ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";

/** Recursive messages are filled to this depth. */
const maxDepth = 3;

/** Messages whose content does not only depend on their descriptor. */
const dynamic: ReadonlySet<string> = new Set(
	[AnySchema, StructSchema, ValueSchema, ListValueSchema].map(({ typeName }) => typeName),
);

/** A message in which every field is set, with one entry in each list and map. */
export function sampleOf(schema: DescMessage): MessageShape<DescMessage> {
	return filled(schema, maxDepth).message;
}

function filled(schema: DescMessage, depth: number): ReflectMessage {
	const message = reflect(schema, create(schema));
	if (depth > 0 && !dynamic.has(schema.typeName)) {
		for (const field of schema.fields) {
			fill(message, field, depth - 1);
		}
	}
	return message;
}

function fill(message: ReflectMessage, field: DescField, depth: number): void {
	switch (field.fieldKind) {
		case "scalar":
			message.set(field, scalarOf(field.scalar, field.longAsString));
			break;
		case "enum":
			message.set(field, field.enum.values.at(-1)?.number ?? 0);
			break;
		case "message":
			message.set(field, filled(field.message, depth));
			break;
		case "list":
			message
				.get(field)
				.add(
					field.listKind === "message"
						? filled(field.message, depth)
						: field.listKind === "enum"
							? (field.enum.values.at(-1)?.number ?? 0)
							: scalarOf(field.scalar, field.longAsString),
				);
			break;
		case "map": {
			const key = scalarOf(field.mapKey, false);
			if (!(key instanceof Uint8Array)) {
				message
					.get(field)
					.set(
						key,
						field.mapKind === "message"
							? filled(field.message, depth)
							: field.mapKind === "enum"
								? (field.enum.values.at(-1)?.number ?? 0)
								: scalarOf(field.scalar, false),
					);
			}
		}
	}
}

function scalarOf(
	type: ScalarType,
	longAsString: boolean,
): string | number | bigint | boolean | Uint8Array {
	switch (type) {
		case ScalarType.STRING:
			return "a";
		case ScalarType.BYTES:
			return Uint8Array.of(0x61);
		case ScalarType.BOOL:
			return true;
		case ScalarType.INT64:
		case ScalarType.UINT64:
		case ScalarType.SINT64:
		case ScalarType.FIXED64:
		case ScalarType.SFIXED64:
			return longAsString ? "1" : 1n;
		default:
			return 1;
	}
}
