import type { AddCommand } from "./commands/runner.ts";
import { exitCodes } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { runCommandLine } from "./program.ts";

/**
 * Runs the command line of this process, and sets its exit code.
 *
 * @param furtherCommands - commands beside those of this package. Each is added at every start, so it should import what
 *   it needs only when it runs.
 */
export async function runProcess(furtherCommands: readonly AddCommand[] = []): Promise<void> {
	const interrupt = new AbortController();
	process.once("SIGINT", () => {
		interrupt.abort();
		// A second interrupt exits immediately.
		process.once("SIGINT", () => process.exit(exitCodes.interrupted));
	});
	process.once("SIGTERM", () => interrupt.abort());

	// Keeps the process alive while a watch waits to reconnect.
	const keepAlive = setInterval(() => {}, 2 ** 30);
	const io = processIo(interrupt.signal);
	const exitCode = await runCommandLine(process.argv.slice(2), io, furtherCommands);
	// It is set already if the output could not be written. Not `process.exit`, which would lose buffered output.
	process.exitCode = exitCode || (process.exitCode ?? exitCodes.ok);
	clearInterval(keepAlive);
}
