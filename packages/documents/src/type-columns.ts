import {
	type DescField,
	type DescMessage,
	getOption,
	hasOption,
	type JsonObject,
	type JsonValue,
} from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { table } from "@plinth/proto/gen/plinth/type/v1/table_pb.js";

/** A column that shows a field of a resource's data. */
export interface DataColumn {
	readonly heading: string;
	/** The text of the cell, from the data in its JSON form with field names. */
	readonly cellOf: (data: JsonObject) => string;
}

/** The maximum number of columns of a type that declares none. */
const maxDefaultColumns = 4;

/**
 * The columns of a type: those of the option `(plinth.type.v1.table)` on its message, or otherwise its first
 * fields that fit into a cell. A declared path that the message lacks is an empty column.
 */
export function columnsOf(schema: DescMessage): readonly DataColumn[] {
	if (hasOption(schema, table)) {
		return getOption(schema, table).columns.map(({ heading, path }) => ({
			heading: heading || headingOf(path),
			cellOf: (data) => cellText(valueAt(data, path.split("."))),
		}));
	}
	return schema.fields.filter(fitsIntoCell).slice(0, maxDefaultColumns).map(columnOf);
}

/** The columns of a type, and then its other fields that fit into a cell. */
export function wideColumnsOf(schema: DescMessage): readonly DataColumn[] {
	const columns = columnsOf(schema);
	const headings = new Set(columns.map(({ heading }) => heading));
	const others = schema.fields.filter(fitsIntoCell).map(columnOf);
	return [...columns, ...others.filter(({ heading }) => !headings.has(heading))];
}

function columnOf({ name }: DescField): DataColumn {
	return { heading: headingOf(name), cellOf: (data) => cellText(data[name]) };
}

function headingOf(path: string): string {
	return path.replaceAll(/[._]/g, "-").toUpperCase();
}

/** Whether a cell can show the field. Lists of messages are shown by their length. */
function fitsIntoCell(field: DescField): boolean {
	switch (field.fieldKind) {
		case "message":
			return hasCustomJsonRepresentation(field.message);
		case "map":
			return field.mapKind !== "message";
		default:
			return true;
	}
}

/** The value at the path. For lists, the values at the path in all entries. */
export function valueAt(
	value: JsonValue | undefined,
	path: readonly string[],
): JsonValue | undefined {
	const [field, ...rest] = path;
	if (field === undefined || value === undefined) {
		return value;
	}
	if (Array.isArray(value)) {
		return value.flatMap((item) => valueAt(item, path) ?? []);
	}
	return typeof value === "object" && value !== null && Object.hasOwn(value, field)
		? valueAt(value[field], rest)
		: undefined;
}

function cellText(value: JsonValue | undefined): string {
	if (value === undefined || value === null) {
		return "";
	}
	if (Array.isArray(value)) {
		return value.every((item) => typeof item !== "object")
			? value.join(", ")
			: `${value.length} ${value.length === 1 ? "entry" : "entries"}`;
	}
	if (typeof value === "object") {
		return Object.entries(value)
			.map(([key, item]) => `${key}=${typeof item === "object" ? JSON.stringify(item) : item}`)
			.join(", ");
	}
	return String(value);
}
