import type { Logger } from "@plinth/runtime";

/** A log line. */
export interface LoggedLine {
	readonly level: "debug" | "info" | "warn" | "error";
	readonly message: string;
	readonly fields: Readonly<Record<string, unknown>>;
}

/** Beyond this many lines, the oldest are dropped. */
const maxLines = 10_000;

/** A logger that keeps its lines for assertions. */
export class TestLog implements Logger {
	readonly #lines: LoggedLine[] = [];
	readonly debug = this.#keep("debug");
	readonly info = this.#keep("info");
	readonly warn = this.#keep("warn");
	readonly error = this.#keep("error");

	/** The newest lines, 10,000 at most. */
	get lines(): readonly LoggedLine[] {
		return this.#lines;
	}

	/** The lines of a level as text: the message, and the error if any. */
	messages(level: LoggedLine["level"]): readonly string[] {
		return this.#lines
			.filter((line) => line.level === level)
			.map(({ message, fields: { err } }) => (err === undefined ? message : `${message}: ${err}`));
	}

	#keep(level: LoggedLine["level"]) {
		return (fields: Readonly<Record<string, unknown>>, message: string): void => {
			this.#lines.push({ level, message, fields });
			if (this.#lines.length > maxLines) {
				this.#lines.shift();
			}
		};
	}
}
