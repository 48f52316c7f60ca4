#!/usr/bin/env node
import process from "node:process";
import { exitCodes } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { runCommandLine } from "./program.ts";

const interrupt = new AbortController();
process.once("SIGINT", () => {
	interrupt.abort();
	// A second one ends it at once.
	process.once("SIGINT", () => process.exit(exitCodes.interrupted));
});
process.once("SIGTERM", () => interrupt.abort());
// Whoever reads has seen enough: `plinth list … | head`.
process.stdout.on("error", () => process.exit(exitCodes.ok));

// Waiting, as a watch does between two tries, is not to end the process.
const held = setInterval(() => {}, 2 ** 30);
// Not `process.exit`: what a pipe has not taken yet would be lost.
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(interrupt.signal));
clearInterval(held);
