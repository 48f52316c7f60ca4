import { readFileSync } from "node:fs";
import { isAbsolute, relative, resolve } from "node:path";
import { type CodePosition, codeFrame } from "@plinth/runtime";

/** A problem in a file of the project. */
export interface Problem extends CodePosition {
	/** Absolute, or relative to the project. */
	readonly file: string;
	readonly message: string;
}

/** A problem as `file:line:column: message` and the code around it. */
export function showProblem(folder: string, { file, message, ...position }: Problem): string {
	const path = resolve(folder, file);
	const place = [shownPath(folder, path), position.line, position.column]
		.filter((each) => each !== undefined)
		.join(":");
	const source = readSource(path);
	const frame = source === undefined ? "" : `\n\n${codeFrame(source, position)}\n`;
	return `${place}: ${message}${frame}`;
}

/** The maximum number of problems that are shown with their code. */
const shownProblems = 5;

/**
 * Problems that a tool has found: the first of each line, since others often follow from it.
 *
 * @param command shows them all.
 */
export function showProblems(
	folder: string,
	problems: readonly Problem[],
	command: string,
): readonly string[] {
	const byLine = new Map<string, Problem>();
	for (const problem of problems) {
		const line = `${problem.file}:${problem.line}`;
		byLine.set(line, byLine.get(line) ?? problem);
	}
	const shown = [...byLine.values()].slice(0, shownProblems);
	const more = byLine.size - shown.length;
	return [
		...shown.map((problem) => showProblem(folder, problem)),
		...(more > 0 ? [`and ${more} more: see ${command}`] : []),
	];
}

/** A path as the user would write it. */
export function shownPath(folder: string, path: string): string {
	const short = relative(folder, path);
	return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
}

function readSource(path: string): string | undefined {
	try {
		return readFileSync(path, "utf8");
	} catch {
		return undefined;
	}
}
