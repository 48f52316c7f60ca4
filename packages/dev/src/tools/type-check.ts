import { join } from "node:path";
import { showProblem } from "../report/problem.ts";
import { runTool } from "./run-tool.ts";
import { tscProblems } from "./tool-problems.ts";

/** The maximum number of problems that are shown with their code. */
const shownProblems = 5;

/** Options of a type check. */
export interface TypeCheckOptions {
	/** The program of TypeScript. */
	readonly program: string;
	readonly folder: string;
	/** Called with what is wrong, or with `undefined` if nothing is any more. Not called if nothing has changed. */
	readonly onResult: (problems: string | undefined) => void;
}

/** Checks the types of the project beside everything else: one run of tsc at a time, after each change. */
export class TypeCheck {
	readonly #options: TypeCheckOptions;
	#running = new AbortController();
	#last: string | undefined;

	constructor(options: TypeCheckOptions) {
		this.#options = options;
	}

	/** Checks again. A run that has not finished is given up: its result would be outdated. */
	start(): void {
		this.stop();
		this.#running = new AbortController();
		void this.#check(this.#running.signal);
	}

	stop(): void {
		this.#running.abort();
	}

	async #check(signal: AbortSignal): Promise<void> {
		const { program, folder, onResult } = this.#options;
		const state = join(folder, "node_modules", ".cache", "plinth-dev.tsbuildinfo");
		const { code, output } = await runTool(
			program,
			["--noEmit", "--pretty", "false", "--incremental", "--tsBuildInfoFile", state],
			folder,
			signal,
		);
		if (signal.aborted) {
			return;
		}
		const result = code === 0 ? undefined : this.#describe(output);
		if (result !== this.#last) {
			this.#last = result;
			onResult(result);
		}
	}

	#describe(output: string): string {
		const { problems, others } = tscProblems(output);
		const shown = problems.slice(0, shownProblems);
		const more = problems.length - shown.length;
		return [
			...shown.map((problem) => showProblem(this.#options.folder, problem)),
			...(more > 0 ? [`and ${more} more: see npx tsc --noEmit`] : []),
			...others,
		].join("\n");
	}
}
