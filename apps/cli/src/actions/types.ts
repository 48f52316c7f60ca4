import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { scopeName } from "@plinth/resource";
import type { ServerSession } from "../api/server-session.ts";
import { scalarName } from "../document/scalar-name.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { type PlainRecords, showRecords } from "../output/show-records.ts";

/** Prints the types of the server, or the fields of one type. */
export async function types(
	session: ServerSession,
	word: string | undefined,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io } = session;
	const known = await session.types();
	const rows =
		word === undefined
			? known.all.map(({ key, scope, schema }) => ({
					type: key,
					scope: scopeName(scope) ?? "",
					message: schema.typeName,
				}))
			: fieldsOf(known.find(word).schema);
	if (rows.length > 0 || output !== "table") {
		io.out(await showRecords(rows, output, io));
	} else {
		io.err(
			word === undefined
				? "the server has no types that the caller may use\n"
				: `${known.find(word).key} has no fields\n`,
		);
	}
	return exitCodes.ok;
}

/** The fields of a message and of its nested messages, by path. */
function fieldsOf(
	desc: DescMessage,
	path = "data",
	outer: readonly DescMessage[] = [],
): PlainRecords {
	return desc.fields.flatMap((field) => {
		const at = `${path}.${field.name}${field.fieldKind === "list" ? "[]" : ""}`;
		const oneof = field.fieldKind === "list" || field.fieldKind === "map" ? undefined : field.oneof;
		const row = { field: at, type: typeOfField(field), note: oneof ? `one of ${oneof.name}` : "" };
		const { message } = field;
		const isOpen =
			message !== undefined &&
			field.fieldKind !== "map" &&
			!message.typeName.startsWith("google.protobuf.") &&
			![desc, ...outer].includes(message);
		return [row, ...(isOpen ? fieldsOf(message, at, [desc, ...outer]) : [])];
	});
}

function typeOfField(field: DescField): string {
	const value =
		field.message?.name ??
		field.enum?.values.map(({ name }) => name).join(" | ") ??
		(field.scalar === undefined ? "" : scalarName(field.scalar));
	return field.fieldKind === "map" ? `map of ${scalarName(field.mapKey)} to ${value}` : value;
}
