import type { Clock, Timer } from "@plinth/runtime";
import type { Rate } from "../limits/rate-limiter.ts";

/** What reading once takes in, more or less: how many wait no longer is reckoned by it. */
const usualChunk = 64 * 1024;

/** As often as this, those who wait are let go on. */
const leastWaitMs = 5;

interface Reader {
	readonly proceed: () => void;
}

interface Bucket {
	/** What may be read as of `atMs`; below zero, what was read too much. */
	bytes: number;
	atMs: number;
	readonly waiting: Set<Reader>;
	timer: Timer | undefined;
}

/**
 * Limits the bytes per second that are read for each key: what comes too early is read later, and waits
 * on its socket until then. A token bucket per key may be overdrawn by what is read at once, and nothing
 * is read for the key until it is above zero again. Those who wait go on in their order.
 *
 * A bucket that is full again is forgotten.
 */
export class BytePacer {
	readonly #rate: Rate;
	readonly #clock: Clock;
	/** The one that was used last at the end. */
	readonly #buckets = new Map<string, Bucket>();

	constructor(rate: Rate, clock: Clock) {
		this.#rate = rate;
		this.#clock = clock;
	}

	/** How many keys it knows. */
	get size(): number {
		return this.#buckets.size;
	}

	/** How many wait. */
	get waiting(): number {
		let waiting = 0;
		for (const bucket of this.#buckets.values()) {
			waiting += bucket.waiting.size;
		}
		return waiting;
	}

	/** Whether something may be read for the key at once. */
	isOpen(key: string): boolean {
		const bucket = this.#buckets.get(key);
		if (bucket === undefined) {
			return true;
		}
		this.#fill(bucket);
		return bucket.bytes > 0 && bucket.waiting.size === 0;
	}

	/** Resolves when more may be read for the key, or the signal aborts; `undefined` if it may be now. */
	admit(key: string, signal: AbortSignal): Promise<void> | undefined {
		const bucket = this.#buckets.get(key);
		if (bucket === undefined || signal.aborted || this.isOpen(key)) {
			return undefined;
		}
		return new Promise((resolve) => {
			const reader: Reader = {
				proceed: () => {
					bucket.waiting.delete(reader);
					signal.removeEventListener("abort", reader.proceed);
					resolve();
				},
			};
			bucket.waiting.add(reader);
			signal.addEventListener("abort", reader.proceed, { once: true });
			this.#wake(bucket);
		});
	}

	/** Counts bytes that were read. */
	charge(key: string, bytes: number): void {
		let bucket = this.#buckets.get(key);
		if (bucket === undefined) {
			const atMs = this.#clock.monotonic();
			bucket = { bytes: this.#rate.burst, atMs, waiting: new Set(), timer: undefined };
		} else {
			this.#fill(bucket);
			this.#buckets.delete(key);
		}
		bucket.bytes -= bytes;
		this.#buckets.set(key, bucket);
		this.#forgetFull();
	}

	#fill(bucket: Bucket): void {
		const { perSecond, burst } = this.#rate;
		const nowMs = this.#clock.monotonic();
		bucket.bytes = Math.min(burst, bucket.bytes + ((nowMs - bucket.atMs) / 1_000) * perSecond);
		bucket.atMs = nowMs;
	}

	/** Lets those go on who may, as soon as there is something for them. */
	#wake(bucket: Bucket): void {
		if (bucket.timer !== undefined) {
			return;
		}
		const missing = Math.max(0, 1 - bucket.bytes);
		const delayMs = Math.max(leastWaitMs, Math.ceil((missing / this.#rate.perSecond) * 1_000));
		bucket.timer = this.#clock.setTimer(delayMs, () => {
			bucket.timer = undefined;
			this.#fill(bucket);
			let bytes = bucket.bytes;
			for (const reader of bucket.waiting) {
				if (bytes <= 0) {
					break;
				}
				bytes -= usualChunk;
				reader.proceed();
			}
			if (bucket.waiting.size > 0) {
				this.#wake(bucket);
			}
		});
	}

	/** Looks at two of the oldest: with one added per charge at most, all get their turn. */
	#forgetFull(): void {
		let looked = 0;
		for (const [key, bucket] of this.#buckets) {
			if (looked === 2) {
				return;
			}
			this.#fill(bucket);
			if (bucket.bytes < this.#rate.burst || bucket.waiting.size > 0) {
				return;
			}
			this.#buckets.delete(key);
			looked += 1;
		}
	}
}
