import type { Clock, Timer } from "@plinth/runtime";
import { compareVersions } from "./compare-versions.ts";

/** How often and how long keys waited for the cache to see their own writes. */
export interface OwnWritesMetrics {
	/** Writes that the cache had not seen when they were acknowledged. */
	readonly noted: number;
	/** Times that a key had to wait. */
	readonly waits: number;
	/** How long they waited, all together, in milliseconds. */
	readonly waitedMs: number;
	/** The longest wait, in milliseconds. */
	readonly longestWaitMs: number;
	/** Keys that wait now. */
	readonly waiting: number;
}

/** What the tracker is made with. */
export interface OwnWritesOptions {
	readonly clock: Clock;
	/** How long a key may wait, in milliseconds. */
	readonly limitMs: number;
	/** The cache has seen all writes of a key that waited. */
	readonly onCaughtUp: (key: string) => void;
	/** A key has waited too long. */
	readonly onLimit: (error: Error) => void;
}

interface Note {
	readonly key: string;
	readonly version: string;
}

/** What the cache knows of one type. */
interface View {
	/** All commits up to this version have been applied. */
	version: string;
	/** Writes that have not, oldest first. */
	readonly notes: Note[];
}

/**
 * Why no reconciler rewinds.
 *
 * Let a key's reconcile have written a resource of a watched type, and let the server have
 * acknowledged it with version V. The note is made before the reconcile's own call returns, and
 * the key stays active until all its calls have returned, so it is made before the key can be
 * handed out again. The watch of that type applies events to the cache in commit order, and tells
 * here the versions up to which it has applied everything. The key is handed out again only once
 * that version is V or newer, that is, when the cache holds the write or what replaced it.
 *
 * A run begins by priming from snapshots that are not older than any acknowledged write, so the
 * views of a new run need no notes of the one before; but work that outlived its run may still
 * write, and its notes count against the views of the run that there is.
 *
 * Versions are of one storage and ordered; an event that ends a revision says so with its version,
 * and a bookmark says it where a revision had no event in view. So the wait ends without a timer;
 * the limit is for watches that are stuck.
 *
 * When the cache keeps up, a write costs one comparison. The notes are no more than the writes
 * that the watches have not delivered yet, of keys that wait because of them.
 */
export class OwnWrites {
	readonly #options: OwnWritesOptions;
	readonly #views = new Map<string, View>();
	/** The number of notes that each key waits for. */
	readonly #behind = new Map<string, number>();
	/** Since when keys have been waiting, on the monotonic clock: in the order in which they began. */
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
	 * Forgets all views and notes: a new cache of these families is about to be primed, or none.
	 * Until it is primed, it has seen nothing of them.
	 */
	restart(families: Iterable<string>): void {
		this.#views.clear();
		for (const family of families) {
			this.#views.set(family, { version: "", notes: [] });
		}
		this.#behind.clear();
		this.#waiting.clear();
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	/** The cache holds everything of the family that was committed up to that version. */
	advance(family: string, version: string): void {
		const view = this.#views.get(family);
		if (view === undefined || compareVersions(version, view.version) <= 0) {
			return;
		}
		view.version = version;
		if (view.notes.length > 0) {
			this.#settle(view);
		}
	}

	/** The server has acknowledged, with that version, a write that the key caused. */
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

	/** Whether the key must wait; if so, `onCaughtUp` is called for it. */
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

	/** One timer, for the key that has waited longest when it was set. */
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
		return new Error(`the cache has not seen what was written for ${key} in time`);
	}
}
