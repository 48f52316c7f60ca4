import type { Logger } from "@plinth/runtime";
import { type DestinationStream, type LevelWithSilent, pino } from "pino";
import pretty from "pino-pretty";

/** Options of a logger. */
export interface LoggerOptions {
	/** `info` where it is absent. */
	readonly level?: LevelWithSilent;
	/** Where lines of JSON go; standard error where it is absent. */
	readonly destination?: DestinationStream;
}

const standardError = 2;

/**
 * A logger that writes one line of JSON per call to standard error, or lines for people where that
 * is a terminal.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
	return pino({ level: options.level ?? "info" }, options.destination ?? defaultDestination());
}

function defaultDestination(): DestinationStream {
	return process.stderr.isTTY
		? pretty({ destination: standardError, sync: true, ignore: "pid,hostname" })
		: pino.destination({ dest: standardError, sync: true });
}
