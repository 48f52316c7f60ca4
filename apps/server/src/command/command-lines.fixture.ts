import process from "node:process";
import { runCommand } from "./run-command.ts";
import { serve } from "./serve.ts";

/** The exit code and the whole output of a command line. */
export interface CommandResult {
	readonly code: number;
	readonly stdout: string;
	readonly stderr: string;
}

/**
 * Runs the command lines of its first argument, a JSON array of arrays, one after the other, as `plinth-server` does
 * but in one process, and prints their results as JSON. None of them may start a server.
 */
const results: CommandResult[] = [];
for (const args of JSON.parse(process.argv[2] ?? "[]")) {
	const stdout: string[] = [];
	const stderr: string[] = [];
	const code = await runCommand(args, {
		environment: {},
		stdout: { write: (text) => stdout.push(text) },
		stderr: { write: (text) => stderr.push(text) },
		serve,
	});
	results.push({ code, stdout: stdout.join(""), stderr: stderr.join("") });
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
