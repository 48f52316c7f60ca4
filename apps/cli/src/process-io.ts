import process from "node:process";
import { systemClock } from "@plinth/runtime/clock";
import type { Io } from "./io.ts";

/** The environment of this process: its streams, variables and clock. */
export function processIo(signal: AbortSignal = new AbortController().signal): Io {
	const { stdin, stdout, stderr, env } = process;
	return {
		out: (text) => void stdout.write(text),
		err: (text) => void stderr.write(text),
		readStdin: async () => {
			stdin.setEncoding("utf8");
			let text = "";
			for await (const chunk of stdin) {
				text += chunk;
			}
			return text;
		},
		ask: async (question) => {
			const { createInterface } = await import("node:readline/promises");
			const lines = createInterface({ input: stdin, output: stdout });
			try {
				return await Promise.race([
					lines.question(question, { signal }),
					new Promise<string>((resolve) => lines.once("close", () => resolve(""))),
				]);
			} finally {
				lines.close();
			}
		},
		isInteractive: stdin.isTTY === true && stdout.isTTY === true,
		width: stdout.isTTY ? stdout.columns : undefined,
		// https://no-color.org
		color: stdout.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb",
		env,
		clock: systemClock,
		signal,
		runEditor: async (command, file) => {
			const { runEditor } = await import("./run-editor.ts");
			return runEditor(command, file);
		},
	};
}
