import type { AddCommand } from "@plinth/cli";
import { addDev, addGenerateCode } from "@plinth/dev/command";
import { addGenerate } from "@plinth/scaffold/command";

/** Adds `plinth generate`: the commands that write source files, and the one that generates code from protos. */
const addAllOfGenerate: AddCommand = (program, run) => {
	const generate = addGenerate(program, run);
	addGenerateCode(generate, run);
	generate.description(
		"add a type or a controller to the project, or generate code from its protos",
	);
};

/** The commands of `plinth` that work on a project, beside those that call a server. */
export const projectCommands: readonly AddCommand[] = [addDev, addAllOfGenerate];
