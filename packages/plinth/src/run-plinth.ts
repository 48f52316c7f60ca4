import { type AddCommand, runProcess } from "@plinth/cli";
import { addGenerate } from "@plinth/scaffold/command";

/** The commands that work on a project, beside those that call a server. */
const commandsOfProjects: readonly AddCommand[] = [addGenerate];

/** Runs the command line of this process, and sets its exit code. */
export function runPlinth(): Promise<void> {
	return runProcess(commandsOfProjects);
}
