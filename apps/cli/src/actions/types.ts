import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { commentOf, scalarName } from "@plinth/documents";
import { suggestion } from "@plinth/documents/suggest";
import { scopeName } from "@plinth/resource";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { printable } from "../output/printable.ts";
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
			: withComments(fieldsOf(known.find(word).schema));
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

/** Prints the fields of a type, or one of its fields with those in it. */
export async function explain(
	session: ServerSession,
	word: string,
	field: string | undefined,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io } = session;
	const type = (await session.types()).find(word);
	const fields = fieldsOf(type.schema);
	const path = field === undefined || /^data(\.|$)/.test(field) ? field : `data.${field}`;
	const shown = fields.filter((each) => {
		const at = pathOf(each);
		return path === undefined || path === "data" || at === path || at.startsWith(`${path}.`);
	});
	if (path !== undefined && path !== "data" && shown.length === 0) {
		const hint = suggestion(path, fields.map(pathOf));
		throw usageFailure(`${type.key} has no field ${path}${hint}`);
	}
	if (output === "table") {
		const isWhole = path === undefined || path === "data";
		const comment = isWhole ? commentOf(type.schema) : shown[0]?.comment;
		const scope = scopeName(type.scope) ?? "";
		const lines =
			path === undefined
				? [`type:    ${type.key}`, `scope:   ${scope}`, `message: ${type.schema.typeName}`]
				: [];
		if (comment !== undefined) {
			lines.push(`comment: ${printable(comment).replaceAll(/\n(?=.)/g, "\n         ")}`);
		}
		io.out(lines.length === 0 ? "" : `${lines.join("\n")}\n\n`);
	}
	const isShownAbove = (each: PlainRecords[number]) => output === "table" && pathOf(each) === path;
	const rows = shown.map(({ comment, ...each }) =>
		comment === undefined || isShownAbove(each) ? each : { ...each, comment },
	);
	io.out(await showRecords(withComments(rows), output, io));
	return exitCodes.ok;
}

/** Records with the same fields: all have a comment, or none if the server knows none. */
function withComments(fields: PlainRecords): PlainRecords {
	return fields.some(({ comment }) => comment !== undefined)
		? fields.map((field) => ({ ...field, comment: field.comment ?? "" }))
		: fields;
}

/** The path of a field, as `explain` takes it: without what marks a list. */
export function pathOf({ field }: PlainRecords[number]): string {
	return field?.replaceAll("[]", "") ?? "";
}

/** The fields of a message and of its nested messages, by path, with their comments if they have some. */
export function fieldsOf(
	desc: DescMessage,
	path = "data",
	outer: readonly DescMessage[] = [],
): PlainRecords {
	return desc.fields.flatMap((field) => {
		const at = `${path}.${field.name}${field.fieldKind === "list" ? "[]" : ""}`;
		const oneof = field.fieldKind === "list" || field.fieldKind === "map" ? undefined : field.oneof;
		const comment = commentOf(field);
		const row = {
			...{ field: at, type: typeOfField(field), note: oneof ? `one of ${oneof.name}` : "" },
			...(comment !== undefined && { comment }),
		};
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
