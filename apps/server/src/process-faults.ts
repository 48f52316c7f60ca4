import process from "node:process";
import { inspect } from "node:util";
import type { Logger } from "@plinth/runtime";

/** Faults of a process that are logged at most: each might cause the next. */
const loggedFaults = 100;

/** What is done about faults. */
export interface FaultReaction {
	readonly logger: Logger;
	/** Called once, at the first fault. Must not throw. */
	readonly stop: () => void;
}

/** The faults of a process so far. */
export interface ProcessFaults {
	/** How many there were: with any, the process must not exit as if all was well. */
	readonly count: number;
}

/**
 * From now on, logs rejections that nobody handles and exceptions that nobody catches, with their stacks, and
 * has the process stopped at the first: part of it has ended where nobody foresaw it, and what it left
 * half-done is not known. Those that come while it stops are logged, and the stop goes on.
 */
export function watchFaults({ logger, stop }: FaultReaction): ProcessFaults {
	const faults = { count: 0 };
	const onFault = (message: string) => (failure: unknown) => {
		faults.count += 1;
		if (faults.count <= loggedFaults) {
			try {
				logger.error({ err: errorOf(failure) }, message);
			} catch {
				// Where even that fails, the process must still stop.
			}
		}
		if (faults.count === 1) {
			stop();
		}
	};
	process.on("unhandledRejection", onFault("a rejection was not handled: the process stops"));
	process.on("uncaughtException", onFault("an exception was not caught: the process stops"));
	return faults;
}

/** What was thrown, as an error, whatever it was. */
function errorOf(failure: unknown): Error {
	if (failure instanceof Error) {
		return failure;
	}
	const error = new Error(
		`not an error, but ${inspect(failure, { depth: 2, maxStringLength: 1_000 })}`,
	);
	// It was made here, where nothing failed.
	error.stack = error.message;
	return error;
}

/**
 * Ends the process with this code at once. `process.exit` waits for all threads, one that waits for a dead disk
 * included; replacing the program does not.
 */
export function exitAtOnce(code: number): never {
	try {
		process.execve?.(process.execPath, [process.execPath, "--eval", `process.exit(${code})`], {});
	} catch {
		// Not on Windows.
	}
	process.exit(code);
}
