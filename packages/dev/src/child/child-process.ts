import { type ChildProcess, fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ChildMessage, isChildMessage, type SupervisorMessage } from "./messages.ts";

/** Options of `startChild`. */
export interface ChildOptions {
	/** Flags of `plinth-server`. */
	readonly flags: readonly string[];
	readonly folder: string;
	readonly environment: Readonly<Record<string, string | undefined>>;
	readonly onMessage: (message: ChildMessage) => void;
	/** Called with each line of its standard output and its standard error. */
	readonly onLine: (line: string) => void;
	/** Called once, when the process has exited and its output is read. */
	readonly onExited: (code: number | null, signal: NodeJS.Signals | null) => void;
}

/** A child process. */
export interface RunningChild {
	tell(message: SupervisorMessage): void;
	kill(): void;
}

const main = fileURLToPath(
	new URL(import.meta.url.endsWith(".ts") ? "./main.ts" : "./main.js", import.meta.url),
);

/** Where Node keeps compiled code by default, once it is told to: for the threads of a process as well. */
const compileCache = join(tmpdir(), "node-compile-cache");

/**
 * Starts a child process. It is in a process group of its own: the signals of the terminal are for the supervisor,
 * which decides what a child does. It stops by itself when the supervisor is gone.
 */
export function startChild(options: ChildOptions): RunningChild {
	const { flags, folder, environment, onMessage, onLine, onExited } = options;
	const child = fork(main, flags, {
		cwd: folder,
		env: { NODE_COMPILE_CACHE: compileCache, ...environment },
		execArgv: [],
		detached: process.platform !== "win32",
		stdio: ["ignore", "pipe", "pipe", "ipc"],
	});
	child.on("message", (message) => {
		if (isChildMessage(message)) {
			onMessage(message);
		}
	});
	readLines(child.stdout, onLine);
	readLines(child.stderr, onLine);
	let exited = false;
	const exit = (code: number | null, signal: NodeJS.Signals | null) => {
		if (!exited) {
			exited = true;
			onExited(code, signal);
		}
	};
	child.once("close", exit);
	child.once("error", (error) => {
		// It has not started, or can't be told or killed; then `close` follows.
		if (child.pid === undefined) {
			onLine(`the server can't be started: ${error.message}`);
			exit(null, null);
		}
	});
	return {
		tell: (message) => tell(child, message),
		kill: () => void child.kill("SIGKILL"),
	};
}

function tell(child: ChildProcess, message: SupervisorMessage): void {
	if (child.connected) {
		// A child that exits at the moment needs no message.
		child.send(message, () => {});
	}
}

/** Calls back with each line. One line at the end may lack its line break. */
function readLines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
	let rest = "";
	stream?.setEncoding("utf8");
	stream?.on("data", (text: string) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop() ?? "";
		for (const line of lines) {
			onLine(line);
		}
	});
	stream?.on("end", () => {
		if (rest !== "") {
			onLine(rest);
		}
	});
}
