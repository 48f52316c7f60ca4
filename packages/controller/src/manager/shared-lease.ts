import {
	aborted,
	type Clock,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	sleep,
} from "@plinth/runtime";

/** The delay before the next attempt to acquire the lease after an error, in milliseconds. */
const retryMs = 1_000;

/**
 * The lease that all singletons of a server share, so that they are never split over two servers. After
 * it is lost, it is acquired again.
 */
export class SharedLease {
	readonly #leases: LeaseManager;
	readonly #name: string;
	readonly #clock: Clock;
	readonly #logger: Logger;
	#hold: LeaseHold | undefined;
	readonly #waiting = new Set<(hold: LeaseHold) => void>();

	constructor(
		leases: LeaseManager,
		options: { readonly name: string; readonly clock: Clock; readonly logger: Logger },
	) {
		this.#leases = leases;
		this.#name = options.name;
		this.#clock = options.clock;
		this.#logger = options.logger;
	}

	get held(): boolean {
		return this.#hold !== undefined && !this.#hold.signal.aborted;
	}

	/** Acquires the lease, again after each loss, until the signal aborts; then releases it. */
	async run(signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			const hold = await this.#acquire(signal);
			if (hold === undefined) {
				continue;
			}
			if (hold.signal.aborted) {
				await this.#pause(signal);
			} else {
				this.#hold = hold;
				this.#logger.info({ lease: this.#name }, "acquired the lease of singleton controllers");
				for (const resolve of this.#waiting) {
					resolve(hold);
				}
				this.#waiting.clear();
				await aborted(signal, hold.signal);
				this.#hold = undefined;
			}
			if (!signal.aborted) {
				this.#logger.warn({ lease: this.#name }, "lost the lease of singleton controllers");
			}
			await this.#release(hold);
		}
	}

	/** Resolves with the live hold once there is one. Rejects with the signal's reason if it aborts first. */
	whenHeld(signal: AbortSignal): Promise<LeaseHold> {
		if (this.#hold !== undefined && !this.#hold.signal.aborted) {
			return Promise.resolve(this.#hold);
		}
		return new Promise((resolve, reject) => {
			if (signal.aborted) {
				reject(signal.reason);
				return;
			}
			const onAbort = () => {
				this.#waiting.delete(onHeld);
				reject(signal.reason);
			};
			const onHeld = (hold: LeaseHold) => {
				signal.removeEventListener("abort", onAbort);
				resolve(hold);
			};
			this.#waiting.add(onHeld);
			signal.addEventListener("abort", onAbort, { once: true });
		});
	}

	async #acquire(signal: AbortSignal): Promise<LeaseHold | undefined> {
		try {
			return await this.#leases.acquire(this.#name, signal);
		} catch (err) {
			if (!signal.aborted) {
				this.#logger.warn({ lease: this.#name, err }, "failed to acquire the lease");
				await this.#pause(signal);
			}
			return undefined;
		}
	}

	#pause(signal: AbortSignal): Promise<void> {
		return sleep(this.#clock, retryMs, signal).catch(() => {});
	}

	async #release(hold: LeaseHold): Promise<void> {
		try {
			await hold.release();
		} catch (err) {
			this.#logger.warn({ lease: this.#name, err }, "failed to release the lease");
		}
	}
}
