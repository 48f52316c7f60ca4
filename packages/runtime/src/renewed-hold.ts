import { type Clock, sleep, type Timer } from "./clock.ts";
import type { Fence, LeaseHold } from "./lease.ts";
import type { Logger } from "./logger.ts";

/** The dependencies of a hold that is renewed. */
export interface RenewedHoldContext {
	readonly fence: Fence;
	/** How long the engine keeps the lease after it was granted or renewed, in milliseconds. */
	readonly ttlMs: number;
	/** When it was requested, on the monotonic clock. */
	readonly grantedMs: number;
	readonly clock: Clock;
	readonly logger: Logger;
	/** Renews the lease at the engine; returns whether it still existed. */
	renew(signal: AbortSignal): Promise<boolean>;
	/** Resolves when the engine no longer has the lease. Without it, that is noticed by the next renewal. */
	gone?(signal: AbortSignal): Promise<void>;
	/** Ends the lease at the engine. */
	revoke(): Promise<void>;
	/** Called when the hold was released or has ended, and nothing is left to do. */
	settled(): void;
}

/** The share of the time to live after which a hold ends: before the lease can expire by the clock of the engine. */
const safeShare = 0.8;
/** Renewals per time to live, and attempts after a failed one. */
const renewals = 5;
const attempts = 20;

/**
 * A hold of a lease that an engine grants for a time: renewed until it is released, expires, or is lost at the engine.
 *
 * ```
 *   renewal sent        response               aborts here          the engine may end it from here
 *   ├───────────────────┼──────────────────────┼────────────────────┤
 *   0                                          80 %                 100 % of the time to live
 * ```
 *
 * The time is measured from when the last successful renewal was sent, so that the hold ends here before it
 * expires at the engine, whatever the network delay.
 */
export class RenewedHold implements LeaseHold {
	readonly fence: Fence;
	readonly #context: RenewedHoldContext;
	readonly #ended = new AbortController();
	readonly #work: Promise<unknown>;
	#timer: Timer | undefined;
	#released: Promise<void> | undefined;

	constructor(context: RenewedHoldContext) {
		this.fence = context.fence;
		this.#context = context;
		this.#liveUntil(context.grantedMs);
		this.#work = Promise.allSettled([this.#renew(), this.#notice()]).then(() => {
			if (this.#released === undefined) {
				context.settled();
			}
		});
	}

	get signal(): AbortSignal {
		return this.#ended.signal;
	}

	release(): Promise<void> {
		if (this.#released === undefined) {
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#released = promise;
			resolve(this.#release());
		}
		return this.#released;
	}

	async #release(): Promise<void> {
		this.#end(`lease ${this.fence.lease} was released`);
		await this.#work;
		try {
			// Even after it has ended here, because it may not have expired at the engine.
			await this.#context.revoke();
		} catch (error) {
			const why = error instanceof Error ? error.message : String(error);
			this.#context.logger.warn(
				{ lease: this.fence.lease, why },
				"could not revoke a lease: it will expire",
			);
		} finally {
			this.#context.settled();
		}
	}

	async #renew(): Promise<void> {
		const { clock, ttlMs, renew, logger } = this.#context;
		const { signal } = this;
		let delayMs = ttlMs / renewals;
		while (!signal.aborted) {
			await sleep(clock, delayMs, signal);
			const sentMs = clock.monotonic();
			try {
				if (!(await renew(signal))) {
					this.#end(`lease ${this.fence.lease} has expired`);
					return;
				}
				this.#liveUntil(sentMs);
				delayMs = ttlMs / renewals;
			} catch (error) {
				signal.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				logger.warn({ lease: this.fence.lease, why }, "could not renew a lease");
				delayMs = ttlMs / attempts;
			}
		}
	}

	async #notice(): Promise<void> {
		const { gone } = this.#context;
		if (gone === undefined) {
			return;
		}
		await gone(this.signal);
		this.#end(`lease ${this.fence.lease} has expired or was deleted`);
	}

	/** The hold was valid when a successful request was sent. */
	#liveUntil(sentMs: number): void {
		const { clock, ttlMs } = this.#context;
		this.#timer?.cancel();
		const leftMs = sentMs + ttlMs * safeShare - clock.monotonic();
		if (leftMs <= 0) {
			this.#end(`lease ${this.fence.lease} was not renewed in time`);
			return;
		}
		if (!this.signal.aborted) {
			this.#timer = clock.setTimer(leftMs, () =>
				this.#end(`lease ${this.fence.lease} was not renewed in time`),
			);
		}
	}

	#end(why: string): void {
		if (!this.signal.aborted) {
			this.#timer?.cancel();
			this.#ended.abort(new Error(why));
		}
	}
}
