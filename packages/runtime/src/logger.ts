/** Writes one log line: fields for machines, a message for people. The methods of a pino logger fit. */
export type LogMethod = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** The logger of components. Tokens and the data of resources are never logged. */
export interface Logger {
	readonly debug: LogMethod;
	readonly info: LogMethod;
	readonly warn: LogMethod;
	readonly error: LogMethod;
}

/** Logs nothing. */
export const silentLogger: Logger = {
	debug: () => {},
	info: () => {},
	warn: () => {},
	error: () => {},
};
