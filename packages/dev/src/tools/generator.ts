import { showProblem } from "../report/problem.ts";
import { runTool } from "./run-tool.ts";
import { bufProblems } from "./tool-problems.ts";

/** Generates code from protos: `buf generate` in the project's folder. */
export interface Generator {
	/** @returns what is wrong, or `undefined`, also if it was interrupted. */
	generate(signal: AbortSignal): Promise<string | undefined>;
}

/** @param program the program of buf. */
export function createGenerator(program: string, folder: string): Generator {
	return {
		async generate(signal) {
			const { code, output } = await runTool(program, ["generate"], folder, signal);
			if (code === 0 || signal.aborted) {
				return undefined;
			}
			const { problems, others } = bufProblems(output);
			const shown = problems.map((problem) => showProblem(folder, problem));
			return shown.length > 0
				? shown.join("\n")
				: `buf generate has failed:\n${others.join("\n") || `it exited with ${code}`}`;
		},
	};
}
