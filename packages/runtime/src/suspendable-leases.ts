import type { LeaseHold, LeaseManager } from "./lease.ts";
import { linkedSignal } from "./linked-signal.ts";

/**
 * Leases that a server gives up, and does not acquire, while it is suspended: when it runs and reaches
 * the lease manager, but can't do the work of a lease holder.
 *
 *     active ──suspend: every hold ends, then is released──▶ suspended: `acquire` waits
 *        ▲                                                        │
 *        └──────────────────────── resume ────────────────────────┘
 *
 * Invariant: no hold is live while it is suspended. The signal of a hold aborts within `suspend`, before
 * the hold is released, so that the contract of `LeaseManager` holds.
 */
export class SuspendableLeases implements LeaseManager {
	readonly #leases: LeaseManager;
	/** Aborts on `suspend`; replaced by each `resume`. */
	#active = new AbortController();
	/** Resolves on the next `resume`; absent while active. */
	#resumed: PromiseWithResolvers<void> | undefined;

	constructor(leases: LeaseManager) {
		this.#leases = leases;
	}

	/** Why they are suspended; `undefined` while they are active. */
	get suspended(): Error | undefined {
		return this.#resumed && this.#active.signal.reason;
	}

	/** Gives up all leases. Suspending twice does nothing. */
	suspend(reason: Error): void {
		if (this.#resumed === undefined) {
			this.#resumed = Promise.withResolvers();
			this.#active.abort(reason);
		}
	}

	/** Allows leases to be acquired again. */
	resume(): void {
		if (this.#resumed !== undefined) {
			this.#active = new AbortController();
			this.#resumed.resolve();
			this.#resumed = undefined;
		}
	}

	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		for (;;) {
			await this.#whenActive(signal);
			const active = this.#active.signal;
			let hold: LeaseHold;
			try {
				using ends = linkedSignal(signal, active);
				hold = await this.#leases.acquire(name, ends.signal);
			} catch (failure) {
				if (active.aborted && !signal.aborted) {
					continue;
				}
				throw failure;
			}
			if (!active.aborted) {
				return suspendable(hold, active);
			}
			await hold.release();
		}
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#leases.held(prefix, signal);
	}

	async #whenActive(signal: AbortSignal): Promise<void> {
		signal.throwIfAborted();
		while (this.#resumed !== undefined) {
			const aborted = Promise.withResolvers<never>();
			const onAbort = () => aborted.reject(signal.reason);
			signal.addEventListener("abort", onAbort, { once: true });
			try {
				await Promise.race([this.#resumed.promise, aborted.promise]);
			} finally {
				signal.removeEventListener("abort", onAbort);
			}
		}
	}
}

function suspendable(hold: LeaseHold, active: AbortSignal): LeaseHold {
	const ended = new AbortController();
	const end = (reason: unknown) => {
		hold.signal.removeEventListener("abort", onEnded);
		active.removeEventListener("abort", onSuspended);
		ended.abort(reason);
	};
	const onEnded = () => end(hold.signal.reason);
	const onSuspended = () => {
		end(active.reason);
		// The holder releases it as well, and reports failures of that.
		hold.release().catch(() => {});
	};
	hold.signal.addEventListener("abort", onEnded);
	active.addEventListener("abort", onSuspended);
	if (hold.signal.aborted) {
		onEnded();
	}
	return { fence: hold.fence, signal: ended.signal, release: () => hold.release() };
}
