import { readFileSync } from "node:fs";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { ErrorReport } from "../child/messages.ts";
import type { Problem } from "./problem.ts";

/** What is known of a place in the code. */
type Place = Omit<Problem, "message">;

/**
 * The place in the project's code that an error is about: of a syntax error, the place that could not be parsed; of a
 * module that is not found, its import; of any other error, the innermost call in the project.
 *
 * @param folder of the project.
 */
export function errorPlace(error: ErrorReport, folder: string): Place | undefined {
	return parsedPlace(error) ?? importPlace(error) ?? thrownPlace(error, folder);
}

/** Node puts the place, the code and an arrow before the stack of a syntax error. */
function parsedPlace({ stack = "" }: ErrorReport): Place | undefined {
	const match =
		/^(file:\S+?|\/\S+?|[A-Za-z]:\\\S+?):(\d+)\n(?:.*\n){1,9}?([ \t]*)(\^+)(?:\n|$)/.exec(stack);
	const [, file = "", line = "", indent = "", arrows = ""] = match ?? [];
	return match === null
		? undefined
		: {
				file: pathOf(file),
				line: Number(line),
				column: indent.length + 1,
				length: arrows.length,
			};
}

/** The import of a module that was not found. */
function importPlace({ message }: ErrorReport): Place | undefined {
	const [, what = "", importer = ""] =
		/^Cannot find (?:module|package) '(.+?)' imported from (.+?)(?:\n|$)/.exec(message) ?? [];
	if (importer === "") {
		return undefined;
	}
	const file = pathOf(importer);
	const name = what.split(/[/\\]/).at(-1) ?? what;
	for (const [index, text] of linesOf(file).entries()) {
		const specifier = new RegExp(`(["'])[^"']*${escaped(name)}[^"']*\\1`).exec(text);
		if (specifier !== null) {
			return {
				file,
				line: index + 1,
				column: specifier.index + 1,
				length: specifier[0].length,
			};
		}
	}
	return { file, line: 1 };
}

/** The innermost frame of the stack in a file of the project. */
function thrownPlace({ stack = "" }: ErrorReport, folder: string): Place | undefined {
	for (const line of stack.split("\n")) {
		const match = /^\s+at (?:.* \()?((?:file:\/\/|\/|[A-Za-z]:\\).+?):(\d+):(\d+)\)?$/.exec(line);
		const [, file = "", row = "", column = ""] = match ?? [];
		const path = pathOf(file);
		if (path.startsWith(folder + sep) && !path.includes(`${sep}node_modules${sep}`)) {
			return { file: path, line: Number(row), column: Number(column) };
		}
	}
	return undefined;
}

function pathOf(file: string): string {
	return file.startsWith("file:") ? fileURLToPath(file) : file;
}

function linesOf(file: string): readonly string[] {
	try {
		return readFileSync(file, "utf8").split("\n");
	} catch {
		return [];
	}
}

function escaped(text: string): string {
	return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
