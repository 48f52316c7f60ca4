#!/usr/bin/env node
import process from "node:process";
import { exitCodes } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { runCommandLine } from "./program.ts";

const interrupt = new AbortController();
process.once("SIGINT", () => {
	interrupt.abort();
	// A second interrupt exits immediately.
	process.once("SIGINT", () => process.exit(exitCodes.interrupted));
});
process.once("SIGTERM", () => interrupt.abort());
// The reader of the pipe has exited, as in `plinth list … | head`.
process.stdout.on("error", () => process.exit(exitCodes.ok));

// Keeps the process alive while a watch waits to reconnect.
const keepAlive = setInterval(() => {}, 2 ** 30);
// Not `process.exit`, which would lose buffered output.
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(interrupt.signal));
clearInterval(keepAlive);
