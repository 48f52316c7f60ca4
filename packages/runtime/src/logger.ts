/** Takes one line of a log: fields for machines, a message for people. A pino logger is one. */
export type LogLine = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** Where components log. Tokens and the data of resources are never logged. */
export interface Logger {
	readonly debug: LogLine;
	readonly info: LogLine;
	readonly warn: LogLine;
	readonly error: LogLine;
}

/** Logs nothing. */
export const silentLogger: Logger = {
	debug: () => {},
	info: () => {},
	warn: () => {},
	error: () => {},
};
