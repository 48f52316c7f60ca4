import type { Logger } from "@plinth/runtime";
import { type DestinationStream, type LevelWithSilent, pino } from "pino";

/** Options of a logger. */
export interface LoggerOptions {
	/** `info` by default. */
	readonly level?: LevelWithSilent;
	/** Receives the lines of JSON; standard error by default. */
	readonly destination?: DestinationStream;
}

const standardError = 2;

/** The readable form, loaded only if standard error is a terminal. */
const readable = process.stderr.isTTY ? await import("pino-pretty") : undefined;

/**
 * Creates a logger that writes one line of JSON per call to standard error, or a readable form if that is a
 * terminal.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
	return pino({ level: options.level ?? "info" }, options.destination ?? defaultDestination());
}

function defaultDestination(): DestinationStream {
	return readable === undefined
		? pino.destination({ dest: standardError, sync: true })
		: readable.default({ destination: standardError, sync: true, ignore: "pid,hostname" });
}
