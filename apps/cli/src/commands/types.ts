import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { scopeName } from "@plinth/resource";
import { scalarName } from "../document/read-message.ts";
import { toYaml } from "../document/show-document.ts";
import { exitCodes } from "../exit-codes.ts";
import type { OutputFormat } from "../output/print-resources.ts";
import { plainCell, renderTable } from "../output/table.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth types`: prints the types of the server, or the fields of one type. */
export const addTypes: AddCommand = (program, run) => {
	program
		.command("types [type]")
		.description("print the types of the server, or the fields of one type")
		.addOption(outputOption())
		.action((word: string | undefined, { output }: { output: OutputFormat }) =>
			run(async (session) => {
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
					io.out(show(rows, output, io));
				} else {
					io.err(
						word === undefined
							? "the server has no types that the caller may use\n"
							: `${known.find(word).key} has no fields\n`,
					);
				}
				return exitCodes.ok;
			}),
		);
};

type Rows = readonly Readonly<Record<string, string>>[];

/** Plain records in an output format. Their first field is their name. */
export function show(
	rows: Rows,
	output: OutputFormat,
	options: { readonly width: number | undefined; readonly color: boolean },
): string {
	switch (output) {
		case "json":
			return `${JSON.stringify(rows, undefined, 2)}\n`;
		case "yaml":
			return toYaml(rows.map((row) => ({ ...row })));
		case "name":
			return rows.map((row) => `${Object.values(row)[0]}\n`).join("");
		case "table": {
			const fields = Object.keys(rows[0] ?? {});
			return renderTable(
				fields.map((field, at) => ({ heading: field.toUpperCase(), cut: at > 0 })),
				rows.map((row) => fields.map((field) => plainCell(row[field] ?? ""))),
				options,
			);
		}
	}
}

/** The fields of a message and of its nested messages, by path. */
function fieldsOf(desc: DescMessage, path = "data", outer: readonly DescMessage[] = []): Rows {
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
