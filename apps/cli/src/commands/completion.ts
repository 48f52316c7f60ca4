import { Argument } from "commander";
import { candidates } from "../completion/candidates.ts";
import { scripts, shells } from "../completion/scripts.ts";
import { exitCodes } from "../exit-codes.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth completion`: what a shell is to run to complete words, and what answers it then. */
export const addCompletion: AddCommand = (program, run) => {
	program
		.command("completion")
		.description("print what makes a shell complete: source <(plinth completion bash)")
		.addArgument(new Argument("<shell>", "which one").choices(shells))
		.action((shell: (typeof shells)[number]) =>
			run(async ({ io }) => {
				io.out(scripts[shell]);
				return exitCodes.ok;
			}),
		);
	program.command("__complete [words...]", { hidden: true }).action((words: readonly string[]) =>
		run(async ({ io }) => {
			const found = await candidates(program, words, io);
			io.out(found.map((one) => `${one}\n`).join(""));
			return exitCodes.ok;
		}),
	);
};
