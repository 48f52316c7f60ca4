import { Argument } from "commander";
import { type Shell, shells } from "../completion/shells.ts";
import { exitCodes } from "../exit-codes.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth completion`: the script for a shell, and the hidden command that returns the candidates. */
export const addCompletion: AddCommand = (program, run) => {
	program
		.command("completion")
		.description("print a shell completion script: source <(plinth completion bash)")
		.addArgument(new Argument("<shell>", "the shell").choices(shells))
		.action((shell: Shell) =>
			run(async ({ io }) => {
				const { scripts } = await import("../completion/scripts.ts");
				io.out(scripts[shell]);
				return exitCodes.ok;
			}),
		);
	program.command("__complete [words...]", { hidden: true }).action((words: readonly string[]) =>
		run(async ({ io }) => {
			const { candidates } = await import("../completion/candidates.ts");
			const found = await candidates(program, words, io);
			io.out(found.map((one) => `${one}\n`).join(""));
			return exitCodes.ok;
		}),
	);
};
