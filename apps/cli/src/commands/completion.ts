import { Argument } from "commander";
import { candidates } from "../completion/candidates.ts";
import { scripts, shells } from "../completion/scripts.ts";
import { exitCodes } from "../exit-codes.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth completion`: the script for a shell, and the hidden command that returns the candidates. */
export const addCompletion: AddCommand = (program, run) => {
	program
		.command("completion")
		.description("print a shell completion script: source <(plinth completion bash)")
		.addArgument(new Argument("<shell>", "the shell").choices(shells))
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
