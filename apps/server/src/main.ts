#!/usr/bin/env node
import process from "node:process";
import { runCommand } from "./command/run-command.ts";

// The timers of a stop do not keep the process alive. This one does, until the command is done.
setInterval(() => {}, 2 ** 30);

process.exit(
	await runCommand(process.argv.slice(2), {
		environment: process.env,
		stdout: process.stdout,
		stderr: process.stderr,
		// Loaded only for a server: it takes longer to load than any other command takes to run.
		serve: async (configuration) => (await import("./command/serve.ts")).serve(configuration),
	}),
);
