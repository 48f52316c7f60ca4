import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@plinth/runtime";
import { showProblems } from "../report/problem.ts";
import { generatedFolders, replaceGeneratedFiles } from "./generated-files.ts";
import { lockGeneration } from "./generation-lock.ts";
import { runTool } from "./run-tool.ts";
import { bufProblems } from "./tool-problems.ts";

/** Generates code from protos: what `buf generate` does in the project's folder. */
export interface Generator {
	/** @returns what is wrong, each with its code; nothing if it was interrupted. */
	generate(signal: AbortSignal): Promise<readonly string[]>;
}

/** Options of `createGenerator`. */
export interface GeneratorOptions {
	/** The program of buf. */
	readonly program: string;
	/** The folder of the project, absolute. */
	readonly folder: string;
	readonly clock: Clock;
}

/**
 * Creates a generator. Compilers and servers read the code beside it, and other processes generate it too: a user runs
 * `npm run check` while `plinth dev` runs. Invariants:
 *
 * - Generated files are complete at all times. buf would empty each before it writes it. Hence it generates into another
 *   folder, and then what differs is replaced.
 * - What a process has generated is never undone by one that has read older protos, and with `clean: true` would delete
 *   what is new: only one generates at a time, from the moment at which it reads protos until the code is in place.
 */
export function createGenerator({ program, folder, clock }: GeneratorOptions): Generator {
	const ownFolder = join(folder, ".plinth");
	return {
		async generate(signal) {
			try {
				await mkdir(ownFolder, { recursive: true });
				using _lock = await lockGeneration(ownFolder, clock, signal);
				const folders = generatedFolders(await templateOf(folder));
				if (folders === undefined) {
					return await runBuf(program, [], folder, signal);
				}
				await using staging = await stagingFolder(ownFolder);
				const problems = await runBuf(program, ["--output", staging.path], folder, signal);
				if (problems.length === 0 && !signal.aborted) {
					await replaceGeneratedFiles(staging.path, folder, folders, signal);
				}
				return problems;
			} catch (error) {
				return signal.aborted ? [] : [`generated code can't be written: ${error}`];
			}
		},
	};
}

/** A new folder on the file system of the project, which is removed when it is disposed of. */
async function stagingFolder(within: string): Promise<AsyncDisposable & { readonly path: string }> {
	const path = await mkdtemp(join(within, "generated-"));
	return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
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
