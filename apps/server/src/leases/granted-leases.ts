import type { Clock, Fence, TimedLeases } from "@plinth/runtime";

/** A lease of a client that this server has granted or renewed, and that has not ended as far as it knows. */
export interface GrantedLease {
	readonly name: string;
	/** The id that the client has chosen. */
	readonly holder: string;
	/** Since when it has been held, in milliseconds since the epoch; `undefined` if another server has granted it. */
	readonly sinceMs: number | undefined;
	/** When it ends unless it is renewed, in milliseconds since the epoch. */
	readonly expiresMs: number;
}

interface Known extends Omit<GrantedLease, "name" | "expiresMs"> {
	/** On the monotonic clock. */
	readonly endMs: number;
}

/** So many are known at most; those renewed least recently are forgotten first. */
const mostKnown = 10_000;

/**
 * Knows which leases were granted and renewed through it, without asking the storage. Another server may have renewed or
 * released one since: of several servers that know a lease, the one by which it ends last has renewed it last, and one that
 * was released elsewhere is known until it would have ended.
 */
export class GrantedLeases implements TimedLeases {
	readonly #leases: TimedLeases;
	readonly #clock: Clock;
	/** By name, in the order in which they end. */
	readonly #known = new Map<string, Known>();

	constructor(leases: TimedLeases, clock: Clock) {
		this.#leases = leases;
		this.#clock = clock;
	}

	get ttlMs(): number {
		return this.#leases.ttlMs;
	}

	/** The leases that have not ended. */
	current(): readonly GrantedLease[] {
		this.#forgetEnded();
		const nowMs = this.#clock.now();
		const monotonicMs = this.#clock.monotonic();
		return [...this.#known].map(([name, { holder, sinceMs, endMs }]) => ({
			...{ name, holder, sinceMs },
			expiresMs: nowMs + endMs - monotonicMs,
		}));
	}

	async grant(name: string, holder: string, patience: AbortSignal): Promise<Fence | undefined> {
		const fence = await this.#leases.grant(name, holder, patience);
		if (fence !== undefined) {
			this.#lasts(name, holder, this.#clock.now());
		}
		return fence;
	}

	async renew(name: string, holder: string): Promise<Fence | undefined> {
		const fence = await this.#leases.renew(name, holder);
		if (fence !== undefined) {
			this.#lasts(name, holder, undefined);
		} else {
			this.#ended(name, holder);
		}
		return fence;
	}

	async release(name: string, holder: string): Promise<void> {
		await this.#leases.release(name, holder);
		this.#ended(name, holder);
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#leases.held(prefix, signal);
	}

	/** @param sinceMs - since when, if the holder is not known to have it already. */
	#lasts(name: string, holder: string, sinceMs: number | undefined): void {
		this.#forgetEnded();
		const before = this.#known.get(name);
		const since = before?.holder === holder ? before.sinceMs : sinceMs;
		// Moves it behind all others.
		this.#known.delete(name);
		this.#known.set(name, {
			...{ holder, sinceMs: since },
			endMs: this.#clock.monotonic() + this.ttlMs,
		});
	}

	#ended(name: string, holder: string): void {
		if (this.#known.get(name)?.holder === holder) {
			this.#known.delete(name);
		}
	}

	#forgetEnded(): void {
		const nowMs = this.#clock.monotonic();
		for (const [name, { endMs }] of this.#known) {
			if (endMs > nowMs && this.#known.size < mostKnown) {
				break;
			}
			this.#known.delete(name);
		}
	}
}
