import { contentOf, type KnownTypes } from "@plinth/documents";
import { toYaml } from "@plinth/documents/yaml";
import type { Resource } from "@plinth/proto";
import { structuredPatch } from "diff";

/** The diff of two states of a resource, with three lines of context. */
export function showDiff(
	before: Resource | undefined,
	after: Resource,
	types: KnownTypes,
	color: boolean,
): string {
	const yamlOf = (resource: Resource | undefined) =>
		resource === undefined ? "" : toYaml(contentOf(resource, types));
	const { hunks } = structuredPatch("", "", yamlOf(before), yamlOf(after), "", "", { context: 3 });
	return hunks
		.flatMap(({ lines }) => lines)
		.map((line) => `${color ? colored(line) : line}\n`)
		.join("");
}

function colored(line: string): string {
	switch (line[0]) {
		case "+":
			return `\x1b[32m${line}\x1b[39m`;
		case "-":
			return `\x1b[31m${line}\x1b[39m`;
		default:
			return line;
	}
}
