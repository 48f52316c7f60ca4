import type { ApplyFlags } from "../actions/apply.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth diff`: prints how files differ from what is stored. */
export const addDiff: AddCommand = (program, run) => {
	program
		.command("diff")
		.description("print how YAML or JSON files differ from what is stored; exits with 8 if they do")
		.requiredOption("-f, --filename <file...>", "file, folder of files, or - for standard input")
		.action((flags: ApplyFlags) =>
			run(async (session) => {
				const { diff } = await import("../actions/apply.ts");
				return diff(await session.server(), flags);
			}),
		);
};
