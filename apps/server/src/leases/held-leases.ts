import type { Clock, LeaseHold, LeaseManager } from "@plinth/runtime";

/** A lease that this server holds. */
export interface HeldLease {
	readonly name: string;
	/** Since when, in milliseconds since the epoch. */
	readonly sinceMs: number;
}

/** Knows which leases are acquired through it. */
export class HeldLeases implements LeaseManager {
	readonly #leases: LeaseManager;
	readonly #clock: Pick<Clock, "now">;
	/** Of each hold that has not ended. */
	readonly #held = new Map<LeaseHold, HeldLease>();

	constructor(leases: LeaseManager, clock: Pick<Clock, "now">) {
		this.#leases = leases;
		this.#clock = clock;
	}

	/** The leases that are held now. */
	current(): readonly HeldLease[] {
		return [...this.#held.values()];
	}

	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		const hold = await this.#leases.acquire(name, signal);
		if (!hold.signal.aborted) {
			this.#held.set(hold, { name, sinceMs: this.#clock.now() });
			hold.signal.addEventListener("abort", () => this.#held.delete(hold), { once: true });
		}
		return hold;
	}

	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>> {
		return this.#leases.held(prefix, signal);
	}
}
