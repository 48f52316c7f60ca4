import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DevIo } from "./dev-io.ts";
import { bufIsMissing } from "./project/project.ts";
import { createGenerator } from "./tools/generator.ts";
import { findTool } from "./tools/run-tool.ts";

/** Generates the code of the project around the working directory. Returns the exit code. */
export async function runGenerateCode({ err, clock, signal }: DevIo): Promise<0 | 1 | 2> {
	const folder = projectFolder(process.cwd());
	if (folder === undefined) {
		err(
			`plinth: there is no buf.gen.yaml in ${process.cwd()}, nor in a folder above it: run plinth generate code in the folder of a project\n`,
		);
		return 2;
	}
	const program = findTool(folder, "buf");
	if (program === undefined) {
		err(`plinth: ${bufIsMissing}\n`);
		return 2;
	}
	const problems = await createGenerator({ program, folder, clock }).generate(signal);
	for (const problem of problems) {
		err(`${problem}\n`);
	}
	return problems.length === 0 && !signal.aborted ? 0 : 1;
}

/** The nearest folder with a `buf.gen.yaml`. */
function projectFolder(folder: string): string | undefined {
	if (existsSync(join(folder, "buf.gen.yaml"))) {
		return folder;
	}
	return dirname(folder) === folder ? undefined : projectFolder(dirname(folder));
}
