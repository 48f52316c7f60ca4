import type { Clock } from "@plinth/runtime";

/** What the command uses of the command line that runs it. */
export interface DevIo {
	readonly out: (text: string) => void;
	readonly err: (text: string) => void;
	readonly color: boolean;
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly clock: Clock;
	/** Aborts when the user interrupts. */
	readonly signal: AbortSignal;
}
