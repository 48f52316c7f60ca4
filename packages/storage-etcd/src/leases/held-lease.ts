import { type Clock, type Fence, type LeaseHold, type Logger, sleep } from "@plinth/runtime";

/** What a hold is made of. */
export interface HeldLeaseContext {
	readonly fence: Fence;
	/** How long etcd keeps the lease after it was granted or renewed, in milliseconds. */
	readonly ttlMs: number;
	/** When it was asked for, on the monotonic clock. */
	readonly grantedMs: number;
	readonly clock: Clock;
	readonly log: Logger;
	/** Starts its time again; answers whether there was any left. */
	renew(signal: AbortSignal): Promise<boolean>;
	/** Resolves when etcd has it no longer. */
	gone(signal: AbortSignal): Promise<void>;
	revoke(): Promise<void>;
	/** Called when nothing is left to be done: it was released, or it has ended otherwise. */
	settled(): void;
}

/** A hold ends when this share of its time is over: before etcd's own clock can say so. */
const safeShare = 0.8;
/** Renewals in the time of a lease, and attempts where one has failed. */
const renewals = 5;
const attempts = 20;

/**
 * A hold on a lease, which it renews until it ends: by its release, by its time, or because etcd has
 * it no longer.
 *
 * ```
 *   renewal sent        answer                 aborts here          etcd may end it from here
 *   ├───────────────────┼──────────────────────┼────────────────────┤
 *   0                                          80 %                 100 % of the time to live
 * ```
 *
 * Its time counts from before the last renewal that was answered was sent, so that it is over here
 * before it is over at etcd, whatever the way between them takes.
 */
export class HeldLease implements LeaseHold {
	readonly fence: Fence;
	readonly #context: HeldLeaseContext;
	readonly #ended = new AbortController();
	readonly #work: Promise<unknown>;
	#timer: { cancel(): void } | undefined;
	#released: Promise<void> | undefined;

	constructor(context: HeldLeaseContext) {
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
			// Also after its time: etcd's own may not be over yet.
			await this.#context.revoke();
		} catch (error) {
			const why = error instanceof Error ? error.message : String(error);
			this.#context.log.warn(
				{ lease: this.fence.lease, why },
				"could not give back a lease: it ends with its time",
			);
		} finally {
			this.#context.settled();
		}
	}

	async #renew(): Promise<void> {
		const { clock, ttlMs, renew, log } = this.#context;
		const { signal } = this;
		let delayMs = ttlMs / renewals;
		while (!signal.aborted) {
			await sleep(clock, delayMs, signal);
			const sentMs = clock.monotonic();
			try {
				if (!(await renew(signal))) {
					this.#end(`lease ${this.fence.lease} has run out at etcd`);
					return;
				}
				this.#liveUntil(sentMs);
				delayMs = ttlMs / renewals;
			} catch (error) {
				signal.throwIfAborted();
				const why = error instanceof Error ? error.message : String(error);
				log.warn({ lease: this.fence.lease, why }, "could not renew a lease");
				delayMs = ttlMs / attempts;
			}
		}
	}

	async #notice(): Promise<void> {
		await this.#context.gone(this.signal);
		this.#end(`lease ${this.fence.lease} was taken away at etcd`);
	}

	/** The hold was good when a request was sent that etcd has answered. */
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
