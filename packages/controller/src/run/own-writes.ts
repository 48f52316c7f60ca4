import type { Clock, Timer } from "@plinth/runtime";
import { compareVersions } from "./compare-versions.ts";

/** How often and how long keys waited for the cache to contain their own writes. */
export interface OwnWritesMetrics {
	/** Writes that the cache did not contain when they were acknowledged. */
	readonly noted: number;
	/** How often a key had to wait. */
	readonly waits: number;
	/** The total waiting time, in milliseconds. */
	readonly waitedMs: number;
	/** The longest wait, in milliseconds. */
	readonly longestWaitMs: number;
	/** Keys that are waiting now. */
	readonly waiting: number;
}

/** The options of the tracker. */
export interface OwnWritesOptions {
	readonly clock: Clock;
	/** How long a key may wait, in milliseconds. */
	readonly limitMs: number;
	/** The cache contains all writes of a key that was waiting. */
	readonly onCaughtUp: (key: string) => void;
	/** A key has waited too long. */
	readonly onLimit: (error: Error) => void;
}

interface Note {
	readonly key: string;
	readonly version: string;
}

/** How far the cache of one type has progressed. */
interface View {
	/** All commits up to this version have been applied. */
	version: string;
	/** Writes that have not been applied, oldest first. */
	readonly notes: Note[];
	/** Those that wait until the cache has reached a version. */
	readonly waiters: Set<Waiter>;
}

interface Waiter {
	readonly version: string;
	readonly resolve: () => void;
}

/**
 * Ensures that a reconcile never acts on a cache older than its own writes.
 *
 * Suppose a reconcile has written a resource of a cached type, and the server has acknowledged the write
 * with version V. The write is noted before the reconcile's call returns, and the key stays active until
 * all its calls have returned, so the note exists before the key can be taken again. The watch of that
 * type applies events to the cache in commit order, and reports the version up to which it has applied
 * everything. The key is taken again only once that version is V or newer, that is, once the cache
 * contains the write or a later version.
 *
 * A run primes its cache from snapshots that are not older than any acknowledged write, so the views of a
 * new run need no notes of the previous one. But work that outlived its run may still write, and its notes
 * apply to the views of the current run.
 *
 * Versions come from one storage and are ordered. The last event of a revision carries its version, and a
 * bookmark carries it if no event of the revision is in view. So the wait ends without a timer; the time
 * limit is for stuck watches.
 *
 * If the cache keeps up, a write costs one comparison. There are at most as many notes as writes that the
 * watches have not delivered yet.
 */
export class OwnWrites {
	readonly #options: OwnWritesOptions;
	readonly #views = new Map<string, View>();
	/** The number of notes that each key waits for. */
	readonly #behind = new Map<string, number>();
	/** Since when keys have been waiting, on the monotonic clock; the longest-waiting first. */
	readonly #waiting = new Map<string, number>();
	#timer: Timer | undefined;
	#noted = 0;
	#waits = 0;
	#waitedMs = 0;
	#longestWaitMs = 0;

	constructor(options: OwnWritesOptions) {
		this.#options = options;
	}

	/**
	 * Drops all views and notes: a new cache of these families, if any, is about to be primed. Until then
	 * it contains nothing of them.
	 */
	restart(families: Iterable<string>): void {
		this.#views.clear();
		for (const family of families) {
			this.#views.set(family, { version: "", notes: [], waiters: new Set() });
		}
		this.#behind.clear();
		this.#waiting.clear();
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	/** The cache contains all commits of the family up to that version. */
	advance(family: string, version: string): void {
		const view = this.#views.get(family);
		if (view === undefined || compareVersions(version, view.version) <= 0) {
			return;
		}
		view.version = version;
		if (view.notes.length > 0) {
			this.#settle(view);
		}
		for (const waiter of view.waiters) {
			if (compareVersions(waiter.version, version) <= 0) {
				view.waiters.delete(waiter);
				waiter.resolve();
			}
		}
	}

	/** Resolves when the cache contains all commits of the family up to that version, or never if it is dropped. */
	reached(family: string, version: string): Promise<void> {
		const view = this.#views.get(family);
		return new Promise((resolve) => {
			if (view === undefined || compareVersions(version, view.version) <= 0) {
				resolve();
			} else {
				view.waiters.add({ version, resolve });
			}
		});
	}

	/** The server has acknowledged, with that version, a write by the key's reconcile. */
	note(key: string, family: string, version: string): void {
		const view = this.#views.get(family);
		if (view === undefined || compareVersions(version, view.version) <= 0) {
			return;
		}
		let at = view.notes.length;
		while (at > 0 && compareVersions(version, view.notes[at - 1]?.version ?? "") < 0) {
			at -= 1;
		}
		view.notes.splice(at, 0, { key, version });
		this.#behind.set(key, (this.#behind.get(key) ?? 0) + 1);
		this.#noted += 1;
	}

	/** Whether the key must wait; if so, `onCaughtUp` will be called for it. */
	mustWait(key: string): boolean {
		if (!this.#behind.has(key)) {
			return false;
		}
		this.#waits += 1;
		this.#waiting.set(key, this.#options.clock.monotonic());
		this.#arm();
		return true;
	}

	metrics(): OwnWritesMetrics {
		return {
			noted: this.#noted,
			waits: this.#waits,
			waitedMs: this.#waitedMs,
			longestWaitMs: this.#longestWaitMs,
			waiting: this.#waiting.size,
		};
	}

	#settle(view: View): void {
		let seen = 0;
		for (const note of view.notes) {
			if (compareVersions(note.version, view.version) > 0) {
				break;
			}
			seen += 1;
		}
		for (const { key } of view.notes.splice(0, seen)) {
			const left = (this.#behind.get(key) ?? 1) - 1;
			if (left > 0) {
				this.#behind.set(key, left);
			} else {
				this.#behind.delete(key);
				this.#caughtUp(key);
			}
		}
	}

	#caughtUp(key: string): void {
		const sinceMs = this.#waiting.get(key);
		if (sinceMs === undefined) {
			return;
		}
		const waitedMs = this.#options.clock.monotonic() - sinceMs;
		this.#waiting.delete(key);
		this.#waitedMs += waitedMs;
		this.#longestWaitMs = Math.max(this.#longestWaitMs, waitedMs);
		if (this.#waiting.size === 0) {
			this.#timer?.cancel();
			this.#timer = undefined;
		}
		this.#options.onCaughtUp(key);
	}

	/** Sets one timer, for the key that has been waiting longest. */
	#arm(): void {
		const [oldest] = this.#waiting;
		if (this.#timer !== undefined || oldest === undefined) {
			return;
		}
		const { clock, limitMs } = this.#options;
		this.#timer = clock.setTimer(oldest[1] + limitMs - clock.monotonic(), () => {
			this.#timer = undefined;
			const [first] = this.#waiting;
			if (first !== undefined && clock.monotonic() - first[1] >= limitMs) {
				this.#options.onLimit(this.#limitError(first[0]));
			} else {
				this.#arm();
			}
		});
	}

	#limitError(key: string): Error {
		for (const [family, view] of this.#views) {
			const note = view.notes.find((candidate) => candidate.key === key);
			if (note !== undefined) {
				return new Error(
					`the cache has not seen version ${note.version} of ${family}, written for ${key}, ` +
						`within ${this.#options.limitMs} ms: its watch is at version ${view.version}`,
				);
			}
		}
		return new Error(`the cache did not receive the writes for ${key} in time`);
	}
}
