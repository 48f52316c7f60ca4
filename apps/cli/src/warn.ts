import type { Io } from "./io.ts";

/** Warns on standard error. */
export function warn({ err }: Io, message: string): void {
	err(`plinth: warning: ${message}\n`);
}
