import { spawnSync } from "node:child_process";
import type { ErrorReport } from "./messages.ts";

/** Parses a module as Node does, without running it. */
const parse = `
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { SourceTextModule } from "node:vm";
const path = process.argv[1];
const source = readFileSync(path, "utf8");
new SourceTextModule(/\\.[cm]?ts$/.test(path) ? stripTypeScriptTypes(source) : source, { identifier: path });
`;

/**
 * Adds the place to syntax errors that V8 has found: Node tells it only when it prints the error. The file is parsed
 * again, in a process that prints it.
 *
 * @param path the file that was being loaded, absolute.
 */
export function withSyntaxPlace(error: ErrorReport, path: string | undefined): ErrorReport {
	if (error.cause !== undefined) {
		return { ...error, cause: withSyntaxPlace(error.cause, path) };
	}
	if (error.name !== "SyntaxError" || !error.stack?.startsWith("SyntaxError: ") || !path) {
		return error;
	}
	const { stderr } = spawnSync(
		process.execPath,
		[
			...["--disable-warning=ExperimentalWarning", "--experimental-vm-modules"],
			...["--input-type=module", "--eval", parse, path],
		],
		{ encoding: "utf8" },
	);
	// Only if it is the same error: the file may have changed, or the error may be from code that was running.
	return stderr.includes(`SyntaxError: ${error.message}`) ? { ...error, stack: stderr } : error;
}
