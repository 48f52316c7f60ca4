import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import {
	AnySchema,
	hasCustomJsonRepresentation,
	StructSchema,
	ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { table } from "@plinth/proto/gen/plinth/type/v1/table_pb.js";
import type { ResourceType } from "@plinth/resource";

/** The invalid table columns of the types, one line each: the type, the path and the reason. */
export function tableProblems(types: readonly ResourceType[]): readonly string[] {
	return types.flatMap(({ key, schema }) =>
		hasOption(schema, table)
			? getOption(schema, table).columns.flatMap(({ path }) => {
					const problem = problemOf(schema, path);
					return problem === undefined
						? []
						: [`type ${key}: (plinth.type.v1.table) path "${path}": ${problem}`];
				})
			: [],
	);
}

/** Messages whose content does not only depend on their descriptor: any path below them may be valid. */
const dynamic: readonly string[] = [AnySchema, StructSchema, ValueSchema].map(
	({ typeName }) => typeName,
);

function problemOf(schema: DescMessage, path: string): string | undefined {
	if (path === "") {
		return "it is empty";
	}
	let message: DescMessage | undefined = schema;
	let reached = schema.typeName;
	const names = path.split(".").values();
	for (const name of names) {
		if (message === undefined) {
			return `${reached} has no fields`;
		}
		const field: DescField | undefined = message.fields.find((each) => each.name === name);
		if (field === undefined) {
			return `${message.typeName} has no field "${name}"${suggestion(message, name)}`;
		}
		if (field.message !== undefined && dynamic.includes(field.message.typeName)) {
			return undefined;
		}
		reached = `the field ${message.typeName}.${name}`;
		// The next name is a key of the map.
		const key = field.fieldKind === "map" ? names.next() : undefined;
		if (key?.done) {
			return undefined;
		}
		message = fieldsOf(field);
	}
	return undefined;
}

/** The message whose fields may follow in a path. Timestamps and the like are shown as text. */
function fieldsOf({ message }: DescField): DescMessage | undefined {
	return message !== undefined && !hasCustomJsonRepresentation(message) ? message : undefined;
}

/** Paths use the field names of the proto file. The most common mistake is a JSON name. */
function suggestion({ fields }: DescMessage, name: string): string {
	const meant = fields.find(({ jsonName }) => jsonName === name);
	return meant === undefined ? "" : `; did you mean "${meant.name}"?`;
}
