import type { Clock, Timer } from "@plinth/runtime";
import type { Rate } from "../limits/rate-limiter.ts";

/** The usual number of bytes per read, which determines how many waiting readers may continue. */
const usualChunk = 64 * 1024;

/** The shortest interval at which waiting readers may continue. */
const leastWaitMs = 5;

interface Reader {
	readonly proceed: () => void;
}

interface Bucket {
	/** The bytes that could be read at `atMs`; negative after too many were read. */
	bytes: number;
	atMs: number;
	readonly waiting: Set<Reader>;
	timer: Timer | undefined;
}

/**
 * Limits the bytes per second that are read for each key: excess bytes wait on their socket and are read later. A token
 * bucket per key may be overdrawn by one read, and nothing is read for the key until the bucket is above zero again.
 * Waiting readers continue in their order.
 *
 * A full bucket is forgotten.
 */
export class BytePacer {
	readonly #rate: Rate;
	readonly #clock: Clock;
	/** The most recently used last. */
	readonly #buckets = new Map<string, Bucket>();
	/** The key that was charged last. */
	#last: string | undefined;

	constructor(rate: Rate, clock: Clock) {
		this.#rate = rate;
		this.#clock = clock;
	}

	/** The number of known keys. */
	get size(): number {
		return this.#buckets.size;
	}

	/** The number of waiting readers. */
	get waiting(): number {
		let waiting = 0;
		for (const bucket of this.#buckets.values()) {
			waiting += bucket.waiting.size;
		}
		return waiting;
	}

	/** Whether bytes may be read for the key now. */
	isOpen(key: string): boolean {
		const bucket = this.#buckets.get(key);
		if (bucket === undefined) {
			return true;
		}
		this.#fill(bucket, this.#clock.monotonic());
		return bucket.bytes > 0 && bucket.waiting.size === 0;
	}

	/** Resolves when bytes may be read for the key, or the signal aborts; returns `undefined` if they may be read now. */
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
		const nowMs = this.#clock.monotonic();
		let bucket = this.#buckets.get(key);
		if (bucket === undefined) {
			bucket = { bytes: this.#rate.burst, atMs: nowMs, waiting: new Set(), timer: undefined };
		} else {
			this.#fill(bucket, nowMs);
		}
		if (key !== this.#last) {
			this.#last = key;
			this.#buckets.delete(key);
		}
		bucket.bytes -= bytes;
		this.#buckets.set(key, bucket);
		this.#forgetFull(nowMs);
	}

	#fill(bucket: Bucket, nowMs: number): void {
		const { perSecond, burst } = this.#rate;
		bucket.bytes = Math.min(burst, bucket.bytes + ((nowMs - bucket.atMs) / 1_000) * perSecond);
		bucket.atMs = nowMs;
	}

	/** Lets waiting readers continue as soon as the bucket allows it. */
	#wake(bucket: Bucket): void {
		if (bucket.timer !== undefined) {
			return;
		}
		const missing = Math.max(0, 1 - bucket.bytes);
		const delayMs = Math.max(leastWaitMs, Math.ceil((missing / this.#rate.perSecond) * 1_000));
		bucket.timer = this.#clock.setTimer(delayMs, () => {
			bucket.timer = undefined;
			this.#fill(bucket, this.#clock.monotonic());
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

	/** Checks the two oldest: since each charge adds at most one, all buckets are eventually checked. */
	#forgetFull(nowMs: number): void {
		let looked = 0;
		for (const [key, bucket] of this.#buckets) {
			if (looked === 2) {
				return;
			}
			this.#fill(bucket, nowMs);
			if (bucket.bytes < this.#rate.burst || bucket.waiting.size > 0) {
				return;
			}
			this.#buckets.delete(key);
			looked += 1;
		}
	}
}
