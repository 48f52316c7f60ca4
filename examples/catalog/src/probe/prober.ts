import type { ProbeTarget } from "./target.ts";

/** What came of a probe. The message is the same each time for the same outcome. */
export interface ProbeResult {
	readonly passed: boolean;
	/** For machines, in PascalCase. */
	readonly reason: string;
	/** For people. */
	readonly message: string;
}

/** Probes once. A failed probe is a result, no error; rejects with the signal's reason where it aborts. */
export type Prober = (target: ProbeTarget, signal: AbortSignal) => Promise<ProbeResult>;
