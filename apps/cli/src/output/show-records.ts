import type { OutputFormat } from "./output-format.ts";
import { plainCell, renderTable } from "./table.ts";

/** Records of text fields. The first field is the name. */
export type PlainRecords = readonly Readonly<Record<string, string>>[];

/** Records in an output format. */
export async function showRecords(
	rows: PlainRecords,
	output: OutputFormat,
	options: { readonly width: number | undefined; readonly color: boolean },
): Promise<string> {
	switch (output) {
		case "json":
			return `${JSON.stringify(rows, undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(rows.map((row) => ({ ...row })));
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
