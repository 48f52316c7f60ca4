import { type AddCommand, runProcess } from "@plinth/cli";
import { addDev } from "@plinth/dev/command";
import { addGenerate } from "@plinth/scaffold/command";

/** The commands that work on a project, beside those that call a server. */
const commandsOfProjects: readonly AddCommand[] = [addDev, addGenerate];

/** Runs the command line of this process, and sets its exit code. */
export function runPlinth(): Promise<void> {
	return runProcess(commandsOfProjects);
}
