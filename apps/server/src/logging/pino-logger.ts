import type { Logger } from "@plinth/runtime";
import { type DestinationStream, type LevelWithSilent, pino } from "pino";
import { BatchedLines } from "./batched-lines.ts";
import { errorFields } from "./error-fields.ts";

/** Options of a logger. */
export interface LoggerOptions {
	/** `info` by default. */
	readonly level?: LevelWithSilent;
	/** Receives the lines of JSON; standard error by default. */
	readonly destination?: DestinationStream;
}

const standardError = 2;

/** The bytes of lines that are kept while they can't be written. Further lines are dropped. */
const mostUnwritten = 1024 * 1024;

/** The readable form, loaded only if standard error is a terminal. */
const readable = process.stderr.isTTY ? await import("pino-pretty") : undefined;

/**
 * Creates a logger that writes one line of JSON per call to standard error, or a readable form if that is a
 * terminal.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
	const { level = "info", destination = defaultDestination() } = options;
	return pino({ level, serializers: { err: errorFields } }, destination);
}

function defaultDestination(): DestinationStream {
	if (readable !== undefined) {
		return readable.default({ destination: standardError, sync: true, ignore: "pid,hostname" });
	}
	const destination = pino.destination({
		dest: standardError,
		sync: true,
		maxLength: mostUnwritten,
	});
	// Otherwise it would throw, and a full disk would end the process. What was not written is written with later lines.
	destination.on("error", () => {});
	const lines = new BatchedLines(destination);
	process.once("exit", () => lines.exit());
	return lines;
}
