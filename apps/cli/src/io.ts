import type { Clock } from "@plinth/runtime";

/** All of the world that a command touches, so that tests can give it another one. */
export interface Io {
	/** Writes to standard output. */
	readonly out: (text: string) => void;
	/** Writes to standard error. */
	readonly err: (text: string) => void;
	/** Standard input to its end. */
	readonly readStdin: () => Promise<string>;
	/** Whether people type at standard input. */
	readonly isInteractive: boolean;
	/** Columns of the terminal; `undefined` where output goes elsewhere and is not to be cut. */
	readonly width: number | undefined;
	/** Whether output may be colored. */
	readonly color: boolean;
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly clock: Clock;
	/** Aborts when the user interrupts. */
	readonly signal: AbortSignal;
	/** Opens a file in an editor, given as a shell command; resolves to its exit code. */
	readonly runEditor: (command: string, file: string) => Promise<number>;
}
