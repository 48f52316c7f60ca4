import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { StandardOutput } from "@plinth/runtime/standard-output";
import { exitCodes } from "./exit-codes.ts";
import { runCommand } from "./run-command.ts";

/** Runs the command line of `plinth-server` in this process, and exits. */
export async function runProcess(): Promise<never> {
	// V8 allocates objects in the old generation if earlier ones from the same place lived long. The first calls of a
	// server do, because they take as long as its code is not compiled. All later objects of that kind would then stay
	// until a major collection, with everything that they refer to: a third of the processor time of a Read.
	setFlagsFromString("--no-allocation-site-pretenuring");

	// The timers of a stop do not keep the process alive. This one does, until the command is done.
	setInterval(() => {}, 2 ** 30);

	// Nobody can be told if standard error is closed. The command goes on.
	process.stderr.on("error", () => {});
	let outputCode: number = exitCodes.stopped;
	const stdout = new StandardOutput(({ reason, isUnread }) => {
		if (!isUnread) {
			process.stderr.write(`plinth-server: can't write to standard output: ${reason}\n`);
			outputCode = exitCodes.failed;
		}
	});
	const code = await runCommand(process.argv.slice(2), {
		environment: process.env,
		stdout,
		stderr: process.stderr,
		// Loaded only for a server: it takes longer to load than any other command takes to run.
		serve: async (configuration) => (await import("./serve.ts")).serve(configuration),
	});
	await stdout.flush();
	process.exit(code || outputCode);
}
