import { showProblems } from "../report/problem.ts";
import { runTool } from "./run-tool.ts";
import { bufProblems } from "./tool-problems.ts";

/** Generates code from protos: `buf generate` in the project's folder. */
export interface Generator {
	/** @returns what is wrong, each with its code; nothing if it was interrupted. */
	generate(signal: AbortSignal): Promise<readonly string[]>;
}

/** @param program the program of buf. */
export function createGenerator(program: string, folder: string): Generator {
	return {
		async generate(signal) {
			const { code, output } = await runTool(program, ["generate"], folder, signal);
			if (code === 0 || signal.aborted) {
				return [];
			}
			const { problems, others } = bufProblems(output);
			return problems.length > 0
				? showProblems(folder, problems, "npx buf generate")
				: [`buf generate has failed:\n${others.join("\n") || `it exited with ${code}`}`];
		},
	};
}
