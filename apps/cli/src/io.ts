import type { Clock } from "@plinth/runtime";

/** A terminal of which a command uses the whole screen. */
export interface Terminal {
	readonly size: () => { readonly columns: number; readonly rows: number };
	/** Calls the handlers for each key, which is not shown, and when the size has changed, until the returned function is called. */
	readonly open: (handlers: {
		readonly onKey: (key: string) => void;
		readonly onResize: () => void;
	}) => () => void;
}

/** The environment of a command: streams, clock, editor. Tests replace it. */
export interface Io {
	/** Writes to standard output. */
	readonly out: (text: string) => void;
	/** Writes to standard error. */
	readonly err: (text: string) => void;
	/**
	 * Lets the command go on without printing if its output can't be written, because its reader has exited or a disk is
	 * full: its exit code is its result. Without this, it ends at once.
	 */
	readonly finishUnread?: () => void;
	/** Reads standard input to its end. */
	readonly readStdin: () => Promise<string>;
	/** Prints a question, and reads a line of the answer; empty if standard input has ended. */
	readonly ask: (question: string) => Promise<string>;
	/** Whether a person uses the terminal. */
	readonly isInteractive: boolean;
	/** Columns of the terminal; `undefined` if the output is not a terminal and must not be truncated. */
	readonly width: number | undefined;
	/** The terminal of standard output; `undefined` if it is none, or can't move its cursor. */
	readonly terminal: Terminal | undefined;
	/** Whether output may be colored. */
	readonly color: boolean;
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly clock: Clock;
	/** Aborts when the user interrupts. */
	readonly signal: AbortSignal;
	/** Opens a file in an editor, which is a shell command, and resolves to its exit code. */
	readonly runEditor: (command: string, file: string) => Promise<number>;
	/** Opens a URL in the browser of the user. Resolves to whether there is one. */
	readonly openUrl: (url: string) => Promise<boolean>;
}
