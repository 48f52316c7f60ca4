/** A program whose only command is `dev`. */
import process from "node:process";
import { systemClock } from "@plinth/runtime";
import { Command } from "commander";
import { addDev } from "./command.ts";

const interrupt = new AbortController();
process.once("SIGINT", () => {
	interrupt.abort();
	process.once("SIGINT", () => process.exit(130));
});
process.once("SIGTERM", () => interrupt.abort());
const keepAlive = setInterval(() => {}, 2 ** 30);
const program = new Command("plinth");
addDev(program, async (work) => {
	process.exitCode = await work({
		io: {
			out: (text) => void process.stdout.write(text),
			err: (text) => void process.stderr.write(text),
			color: process.stdout.isTTY === true,
			env: process.env,
			clock: systemClock,
			signal: interrupt.signal,
		},
	});
});
await program.parseAsync();
clearInterval(keepAlive);
