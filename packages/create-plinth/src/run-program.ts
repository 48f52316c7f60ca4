import { spawn } from "node:child_process";

/** The result of a program. */
export interface ProgramResult {
	readonly succeeded: boolean;
	/** What it has printed, if that was not shown. */
	readonly output: string;
}

/** Where and how a program runs. */
export interface ProgramOptions {
	readonly folder: string;
	/** Interrupts the program if it aborts. */
	readonly signal: AbortSignal;
	/** Whether what it prints is shown as it comes. */
	readonly show?: boolean;
}

/** Runs a program to its end. */
export function runProgram(
	program: string,
	args: readonly string[],
	{ folder, signal, show = false }: ProgramOptions,
): Promise<ProgramResult> {
	const output: string[] = [];
	// On Windows, package managers are scripts, which only a shell can run.
	const isWindows = process.platform === "win32";
	const [command, commandArgs] = isWindows ? [[program, ...args].join(" "), []] : [program, args];
	const child = spawn(command, commandArgs, {
		...{ cwd: folder, signal, killSignal: "SIGINT" },
		shell: isWindows,
		stdio: show ? ["ignore", "inherit", "inherit"] : ["ignore", "pipe", "pipe"],
	});
	child.stdout?.setEncoding("utf8").on("data", (text: string) => output.push(text));
	child.stderr?.setEncoding("utf8").on("data", (text: string) => output.push(text));
	return new Promise((resolve) => {
		child.on("error", ({ message }) => {
			// An interrupted program has still to end.
			if (!signal.aborted || child.pid === undefined) {
				resolve({ succeeded: false, output: message });
			}
		});
		child.on("close", (code) => resolve({ succeeded: code === 0, output: output.join("") }));
	});
}
