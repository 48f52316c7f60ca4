import { isPlanted } from "../fault-points.ts";

/**
 * Limits how many tasks run concurrently per key. A task may need several keys and takes one slot of
 * each. A task that finds no free slot is parked and holds no slots; it is passed to `onFreeSlot` when one
 * becomes free.
 */
export class ConcurrencyLimiter {
	readonly #limit: number;
	readonly #onFreeSlot: (task: string) => void;
	readonly #used = new Map<string, number>();
	readonly #parked = new Map<string, Set<string>>();

	/** @param limit - the number of slots per key. */
	constructor(limit: number, onFreeSlot: (task: string) => void) {
		this.#limit = limit;
		this.#onFreeSlot = onFreeSlot;
	}

	/**
	 * Takes a slot of each key, or parks the task.
	 *
	 * @returns releases the slots; `undefined` if the task was parked.
	 */
	tryAcquire(task: string, keys: ReadonlySet<string>): (() => void) | undefined {
		for (const key of keys) {
			if ((this.#used.get(key) ?? 0) >= this.#limit) {
				const parked = this.#parked.get(key) ?? new Set();
				this.#parked.set(key, parked.add(task));
				return undefined;
			}
		}
		for (const key of keys) {
			this.#used.set(key, (this.#used.get(key) ?? 0) + 1);
		}
		return () => {
			for (const key of keys) {
				this.#release(key);
				if (isPlanted("free one slot of a pass that has taken several")) {
					return;
				}
			}
		};
	}

	/** The number of used slots of a key. */
	used(key: string): number {
		return this.#used.get(key) ?? 0;
	}

	#release(key: string): void {
		const freed = isPlanted("never free a slot of the limiter") ? 0 : 1;
		const left = (this.#used.get(key) ?? 1) - freed;
		if (left === 0) {
			this.#used.delete(key);
		} else {
			this.#used.set(key, left);
		}
		const parked = this.#parked.get(key);
		for (const task of parked ?? []) {
			parked?.delete(task);
			if (parked?.size === 0) {
				this.#parked.delete(key);
			}
			this.#onFreeSlot(task);
			return;
		}
	}
}
