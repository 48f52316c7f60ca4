import { runProcess } from "@plinth/cli";
import { projectCommands } from "./commands.ts";

/** Runs the command line of this process, and sets its exit code. */
export function runPlinth(): Promise<void> {
	return runProcess(projectCommands);
}
