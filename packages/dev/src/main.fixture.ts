/** A program whose only commands are `dev` and `generate code`. */
import process from "node:process";
import { systemClock } from "@plinth/runtime";
import { Command } from "commander";
import { addDev, addGenerateCode, type RunDevCommand } from "./command.ts";

const interrupt = new AbortController();
process.once("SIGINT", () => {
	interrupt.abort();
	process.once("SIGINT", () => process.exit(130));
});
process.once("SIGTERM", () => interrupt.abort());
const keepAlive = setInterval(() => {}, 2 ** 30);
const program = new Command("plinth");
const run: RunDevCommand = async (work) => {
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
};
addDev(program, run);
addGenerateCode(program.command("generate"), run);
await program.parseAsync();
clearInterval(keepAlive);
