import { systemClock } from "@plinth/runtime/clock";
import type { Io, Terminal } from "./io.ts";
import { ProcessOutput } from "./process-output.ts";

/**
 * The environment of this process: its streams, variables and clock. Node.js loads the code of a stream when it is used
 * first, so standard input and standard error are used only where they are needed.
 */
export function processIo(signal: AbortSignal = new AbortController().signal): Io {
	const { stdout, env } = process;
	const output = new ProcessOutput();
	return {
		out: (text) => output.out(text),
		err: (text) => output.err(text),
		finishUnread: () => output.finishUnread(),
		readStdin: async () => {
			const { stdin } = process;
			stdin.setEncoding("utf8");
			let text = "";
			for await (const chunk of stdin) {
				text += chunk;
			}
			return text;
		},
		ask: async (question) => {
			const { createInterface } = await import("node:readline/promises");
			const lines = createInterface({ input: process.stdin, output: stdout });
			// Of a terminal, readline reads Ctrl-C as a key: without this, it would be an empty answer.
			lines.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
			try {
				return await Promise.race([
					lines.question(question, { signal }),
					new Promise<string>((resolve) => lines.once("close", () => resolve(""))),
				]);
			} finally {
				lines.close();
			}
		},
		get isInteractive() {
			return process.stdin.isTTY === true && stdout.isTTY === true;
		},
		// A terminal that does not know its size reports 0.
		width: (stdout.isTTY && stdout.columns) || undefined,
		terminal: stdout.isTTY && env.TERM !== "dumb" ? processTerminal() : undefined,
		// https://no-color.org
		color: stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb",
		env,
		clock: systemClock,
		signal,
		runEditor: async (command, file) => {
			const { runEditor } = await import("./run-editor.ts");
			return runEditor(command, file);
		},
		openUrl: async (url) => {
			const { openUrl } = await import("./open-url.ts");
			return openUrl(url);
		},
	};
}

/** The terminal of this process. Keys are read only if standard input is a terminal, too. */
function processTerminal(): Terminal {
	const { stdout } = process;
	return {
		// Terminals that do not know their size, such as serial ones, report 0.
		size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
		open: ({ onKey, onResize }) => {
			const { stdin } = process;
			const onData = (keys: string) => [...keys].forEach(onKey);
			stdout.on("resize", onResize);
			if (stdin.isTTY) {
				stdin.setRawMode(true).setEncoding("utf8").on("data", onData).resume();
			}
			return () => {
				stdout.off("resize", onResize);
				if (stdin.isTTY) {
					stdin.setRawMode(false).off("data", onData).pause();
				}
			};
		},
	};
}
