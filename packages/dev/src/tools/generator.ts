import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { showProblems } from "../report/problem.ts";
import { generatedFolders, replaceGeneratedFiles } from "./generated-files.ts";
import { runTool } from "./run-tool.ts";
import { bufProblems } from "./tool-problems.ts";

/** Generates code from protos: what `buf generate` does in the project's folder. */
export interface Generator {
	/** @returns what is wrong, each with its code; nothing if it was interrupted. */
	generate(signal: AbortSignal): Promise<readonly string[]>;
}

/**
 * Creates a generator. With `clean: true`, buf first deletes all generated code, so that compilers fail which run beside
 * it, such as the `npm run check` of a user. Hence it generates into another folder, and then replaces what has changed.
 *
 * @param program the program of buf.
 */
export function createGenerator(program: string, folder: string): Generator {
	return {
		async generate(signal) {
			const folders = generatedFolders(await templateOf(folder));
			if (folders === undefined) {
				return runBuf(program, [], folder, signal);
			}
			let staging: string | undefined;
			try {
				await mkdir(join(folder, ".plinth"), { recursive: true });
				staging = await mkdtemp(join(folder, ".plinth", "generated-"));
				const problems = await runBuf(program, ["--output", staging], folder, signal);
				if (problems.length === 0 && !signal.aborted) {
					await replaceGeneratedFiles(staging, folder, folders, signal);
				}
				return problems;
			} catch (error) {
				return signal.aborted ? [] : [`generated code can't be written: ${error}`];
			} finally {
				if (staging !== undefined) {
					await rm(staging, { recursive: true, force: true });
				}
			}
		},
	};
}

/** Empty if it is not there (any more). */
function templateOf(folder: string): Promise<string> {
	return readFile(join(folder, "buf.gen.yaml"), "utf8").catch(() => "");
}

async function runBuf(
	program: string,
	args: readonly string[],
	folder: string,
	signal: AbortSignal,
): Promise<readonly string[]> {
	const { code, output } = await runTool(program, ["generate", ...args], folder, signal);
	if (code === 0 || signal.aborted) {
		return [];
	}
	const { problems, others } = bufProblems(output);
	return problems.length > 0
		? showProblems(folder, problems, "npx buf generate")
		: [`buf generate has failed:\n${others.join("\n") || `it exited with ${code}`}`];
}
