import { readFileSync } from "node:fs";
import { join } from "node:path";
import { objectOf, textOf } from "../clients/json.ts";

/** The levels of warnings and errors in the logs. */
const levels: Readonly<Record<number, string>> = { 40: "warning", 50: "error", 60: "fatal" };

/** Counts the warnings and errors in the logs of the servers. */
export function warningsLogged(
	dataDirectory: string,
	names: readonly string[],
): Readonly<Record<string, number>> {
	const warnings = names
		.flatMap((name) => readFileSync(join(dataDirectory, `${name}.log`), "utf8").split("\n"))
		.flatMap(warningOf);
	return Object.fromEntries(
		[...Map.groupBy(warnings, (warning) => warning)].map(([text, { length }]) => [text, length]),
	);
}

function warningOf(line: string): readonly string[] {
	// The last line may be incomplete if the server was killed.
	if (!line.startsWith("{") || !line.endsWith("}")) {
		return [];
	}
	const { level, msg, err } = objectOf(JSON.parse(line));
	const name = levels[Number(level)];
	const cause = err === undefined ? "" : `: ${textOf(objectOf(err).message)}`;
	return name === undefined ? [] : [`${name}: ${textOf(msg)}${cause}`.replaceAll(/\d+/g, "…")];
}
