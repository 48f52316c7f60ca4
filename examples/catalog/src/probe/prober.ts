import type { ProbeTarget } from "./target.ts";

/** The result of a probe. Equal outcomes have equal messages. */
export interface ProbeResult {
	readonly passed: boolean;
	/** For programs, in PascalCase. */
	readonly reason: string;
	/** For people. */
	readonly message: string;
}

/** Probes once. A failed probe is a result, not an error. Rejects with the signal's reason if it aborts. */
export type Prober = (target: ProbeTarget, signal: AbortSignal) => Promise<ProbeResult>;
