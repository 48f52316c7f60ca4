import {
	Backoff,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	linkedSignal,
	type Runtime,
} from "@plinth/runtime";

/** Options of `runUnderLease`. */
export interface LeaseWorkOptions {
	readonly leases: LeaseManager;
	readonly leaseName: string;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** What is logged when the work has failed and is tried again. */
	readonly what: string;
	/** Resolves when there is something to do. */
	readonly isNeeded: (signal: AbortSignal) => Promise<void>;
	/** Works until the signal aborts, which it also does when the lease is lost. */
	readonly lead: (hold: LeaseHold, signal: AbortSignal) => Promise<void>;
	readonly signal: AbortSignal;
}

/** Works on the one server of a cluster that holds a lease, until the signal aborts. Never rejects. */
export async function runUnderLease(options: LeaseWorkOptions): Promise<void> {
	const { leases, leaseName, runtime, logger, what, isNeeded, lead, signal } = options;
	const { clock, random } = runtime;
	const backoff = new Backoff({ clock, random, baseMs: 100, maxMs: 10_000 });
	while (!signal.aborted) {
		try {
			await isNeeded(signal);
			const hold = await leases.acquire(leaseName, signal);
			try {
				using linked = linkedSignal(signal, hold.signal);
				await lead(hold, linked.signal);
			} finally {
				await hold.release();
			}
		} catch (err) {
			if (signal.aborted) {
				return;
			}
			logger.warn({ err }, what);
		}
		await backoff.wait(signal).catch(() => {});
	}
}
