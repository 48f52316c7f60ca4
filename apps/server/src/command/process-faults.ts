import process from "node:process";
import { inspect } from "node:util";
import type { Logger } from "@plinth/runtime";

/** The maximum number of faults that are logged: one might cause the next. */
const loggedFaults = 100;

/** How a process reacts to faults. */
export interface FaultReaction {
	readonly logger: Logger;
	/** Called once, at the first fault. Must not throw. */
	readonly stop: () => void;
}

/** The faults of a process so far. */
export interface ProcessFaults {
	/** If it is not 0, the process must exit with an error code. */
	readonly count: number;
}

/**
 * Logs unhandled rejections and uncaught exceptions from now on, with their stacks, and stops the process at the
 * first: some part of it ended unexpectedly, and may have left its work half done. Faults during the stop are
 * logged, and the stop continues.
 */
export function watchFaults({ logger, stop }: FaultReaction): ProcessFaults {
	const faults = { count: 0 };
	const onFault = (message: string) => (failure: unknown) => {
		faults.count += 1;
		if (faults.count <= loggedFaults) {
			try {
				logger.error({ err: errorOf(failure) }, message);
			} catch {
				// The process must stop even if that fails.
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

/** The thrown value as an error. */
function errorOf(failure: unknown): Error {
	if (failure instanceof Error) {
		return failure;
	}
	const error = new Error(
		`not an error, but ${inspect(failure, { depth: 2, maxStringLength: 1_000 })}`,
	);
	// Its own stack would point to this function.
	error.stack = error.message;
	return error;
}

/**
 * Exits immediately. `process.exit` waits for all threads, even one that is blocked by a failed disk; replacing the
 * program does not.
 */
export function exitImmediately(code: number): never {
	try {
		process.execve?.(process.execPath, [process.execPath, "--eval", `process.exit(${code})`], {});
	} catch {
		// Not available on Windows.
	}
	process.exit(code);
}
