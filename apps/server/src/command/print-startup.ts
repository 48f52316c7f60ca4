import type { Logger } from "@plinth/runtime";
import { StandardOutput } from "@plinth/runtime/standard-output";

/** Prints the startup message of a process that serves. If that fails, the process serves without it. */
export function printStartup(message: string, logger: Logger): void {
	new StandardOutput(({ reason, isUnread }) => {
		if (!isUnread) {
			logger.warn({ reason }, "the startup message could not be printed");
		}
	}).write(message);
}
