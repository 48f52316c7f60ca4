import { type Clock, sleep, type Timer } from "./clock.ts";
import type { Fence, LeaseHold } from "./lease.ts";
import type { LocalLeases } from "./local-leases.ts";
import { type TimedLeases, TooManyLeases } from "./timed-leases.ts";

/** Options of `LocalTimedLeases`. */
export interface LocalTimedLeasesOptions {
	/** Whose fences the storage checks. */
	readonly leases: LocalLeases;
	readonly clock: Clock;
	/** In milliseconds. */
	readonly ttlMs?: number;
	/** How many leases may be held at once. */
	readonly limit?: number;
	/** Whether no process before this one can have granted any: then the first is granted at once. */
	readonly isFirst?: boolean;
}

interface TimedHold {
	readonly holder: string;
	readonly hold: LeaseHold;
	expires: Timer;
}

/**
 * Leases for a time, of a storage that only one process can open.
 *
 * ```
 *   start            grants begin
 *   ├─────── ttl ────┤──────────▶
 *   holders of the process before may be live
 * ```
 *
 * A process knows nothing of the leases that one before it has granted. All of them have expired when it has run for the
 * time that a lease lasts, so that it grants none until then.
 */
export class LocalTimedLeases implements TimedLeases {
	readonly ttlMs: number;
	readonly #leases: LocalLeases;
	readonly #clock: Clock;
	readonly #limit: number;
	readonly #firstGrantMs: number;
	readonly #holds = new Map<string, TimedHold>();

	constructor(options: LocalTimedLeasesOptions) {
		const { leases, clock, ttlMs = 10_000, limit = 10_000, isFirst = false } = options;
		this.ttlMs = ttlMs;
		this.#leases = leases;
		this.#clock = clock;
		this.#limit = limit;
		this.#firstGrantMs = isFirst ? Number.NEGATIVE_INFINITY : clock.monotonic() + ttlMs;
	}

	async grant(name: string, holder: string, patience: AbortSignal): Promise<Fence | undefined> {
		try {
			await this.#whenGranting(patience);
			for (;;) {
				const fence = this.#tryGrant(name, holder);
				if (fence !== undefined) {
					return fence;
				}
				await this.#leases.whenFree(name, patience);
			}
		} catch (failure) {
			this.#leases.forget(name);
			if (patience.aborted && failure === patience.reason) {
				return undefined;
			}
			throw failure;
		}
	}

	async renew(name: string, holder: string): Promise<Fence | undefined> {
		const held = this.#holds.get(name);
		return held?.holder === holder ? this.#extend(name, held) : undefined;
	}

	async release(name: string, holder: string): Promise<void> {
		this.#end(name, holder);
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#leases.held(prefix, signal);
	}

	/** Ends all leases, so that no timer is left. */
	close(): void {
		for (const [name, { holder }] of [...this.#holds]) {
			this.#end(name, holder);
		}
	}

	#end(name: string, holder: string): void {
		const held = this.#holds.get(name);
		if (held?.holder === holder) {
			held.expires.cancel();
			this.#holds.delete(name);
			// Ends at once; the promise is for other engines.
			void held.hold.release();
			this.#leases.forget(name);
		}
	}

	#whenGranting(patience: AbortSignal): Promise<void> | undefined {
		const waitMs = this.#firstGrantMs - this.#clock.monotonic();
		return waitMs > 0 ? sleep(this.#clock, waitMs, patience) : undefined;
	}

	#tryGrant(name: string, holder: string): Fence | undefined {
		const held = this.#holds.get(name);
		if (held?.holder === holder) {
			return this.#extend(name, held);
		}
		if (held === undefined && this.#holds.size >= this.#limit) {
			throw new TooManyLeases(this.#limit);
		}
		const hold = this.#leases.tryAcquire(name);
		if (hold !== undefined) {
			this.#holds.set(name, { holder, hold, expires: this.#expiry(name, holder) });
			hold.signal.addEventListener("abort", () => this.#end(name, holder), { once: true });
		}
		return hold?.fence;
	}

	#extend(name: string, held: TimedHold): Fence {
		held.expires.cancel();
		held.expires = this.#expiry(name, held.holder);
		return held.hold.fence;
	}

	#expiry(name: string, holder: string): Timer {
		return this.#clock.setTimer(this.ttlMs, () => this.#end(name, holder));
	}
}
