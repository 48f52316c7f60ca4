import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { showProblems } from "../report/problem.ts";
import { runTool } from "./run-tool.ts";
import { tscProblems } from "./tool-problems.ts";

/** Options of a type check. */
export interface TypeCheckOptions {
	/** The program of TypeScript. */
	readonly program: string;
	readonly folder: string;
	/** Called with what is wrong, each with its code, or with nothing if all is right again. Not called otherwise. */
	readonly onResult: (problems: readonly string[]) => void;
}

/** Checks the types of the project beside everything else: one run of tsc at a time, after each change. */
export class TypeCheck {
	readonly #options: TypeCheckOptions;
	#running = new AbortController();
	#last: readonly string[] = [];

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
		const result = code === 0 ? [] : describe(folder, output);
		if (!isDeepStrictEqual(result, this.#last)) {
			this.#last = result;
			onResult(result);
		}
	}
}

function describe(folder: string, output: string): readonly string[] {
	const { problems, others } = tscProblems(output);
	return [...showProblems(folder, problems, "npx tsc --noEmit"), ...others];
}
