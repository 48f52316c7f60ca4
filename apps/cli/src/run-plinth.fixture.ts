import { systemClock } from "@plinth/runtime";
import type { ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { runCommandLine } from "./program.ts";

/** A command line that has been started within the test. */
export interface PlinthRun {
	readonly out: () => string;
	readonly err: () => string;
	readonly ended: Promise<{
		readonly code: ExitCode;
		readonly out: string;
		readonly err: string;
	}>;
	/** Resolves once what it has written, to either stream, contains the text or matches. */
	prints(text: string | RegExp): Promise<void>;
	interrupt(): void;
}

/** What a test may say about the world of the command. */
export interface RunOptions extends Partial<Omit<Io, "out" | "err" | "readStdin" | "signal">> {
	readonly stdin?: string;
}

/** Starts a command line in a world of its own: no terminal, an empty environment. */
export function startPlinth(args: readonly string[], options: RunOptions = {}): PlinthRun {
	let out = "";
	let err = "";
	let changed = Promise.withResolvers<void>();
	const note = () => {
		changed.resolve();
		changed = Promise.withResolvers();
	};
	const interrupt = new AbortController();
	const { stdin = "", ...world } = options;
	let isEnded = false;
	const ended = runCommandLine(args, {
		out: (text) => {
			out += text;
			note();
		},
		err: (text) => {
			err += text;
			note();
		},
		readStdin: async () => stdin,
		ask: async () => {
			throw new Error("the test has nobody to ask");
		},
		isInteractive: false,
		width: undefined,
		terminal: undefined,
		color: false,
		clock: systemClock,
		signal: interrupt.signal,
		runEditor: async () => {
			throw new Error("the test has no editor");
		},
		openUrl: async () => {
			throw new Error("the test has no browser");
		},
		...world,
		env: { XDG_CONFIG_HOME: "/nowhere", ...options.env },
	}).then((code) => {
		isEnded = true;
		note();
		return { code, out, err };
	});
	return {
		out: () => out,
		err: () => err,
		ended,
		interrupt: () => interrupt.abort(),
		async prints(text) {
			const isPrinted = (all: string) =>
				typeof text === "string" ? all.includes(text) : text.test(all);
			while (!isPrinted(out + err)) {
				if (isEnded) {
					throw new Error(`it ended without printing ${text}: ${out}${err}`);
				}
				await changed.promise;
			}
		},
	};
}

/** Runs a command line to its end. */
export function runPlinth(args: readonly string[], options: RunOptions = {}) {
	return startPlinth(args, options).ended;
}
