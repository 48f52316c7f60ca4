import { type Clock, unlessAborted } from "@plinth/runtime";
import { StorageUnavailable } from "./errors.ts";
import type { EventRow, EventStorage, EventWriteOptions } from "./event-storage.ts";

/** Rows of events in memory, which several servers of a test may share. */
export class MemoryEventStorage implements EventStorage {
	readonly #clock: Clock;
	readonly #rows = new Map<string, { readonly row: EventRow; readonly expiresMs: number }>();
	readonly #followers = new Set<Follower>();
	#closed = false;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** How many rows are stored, expired ones included. */
	get size(): number {
		return this.#rows.size;
	}

	async write(rows: readonly EventRow[], { ttlMs }: EventWriteOptions): Promise<void> {
		this.#assertOpen();
		this.#dropExpired();
		const expiresMs = this.#clock.monotonic() + ttlMs;
		for (const row of rows) {
			if (row.body === undefined) {
				this.#rows.delete(row.key);
			} else {
				this.#rows.set(row.key, { row, expiresMs });
			}
		}
		for (const follower of this.#followers) {
			follower.push(rows);
		}
	}

	async *follow(signal: AbortSignal): AsyncGenerator<readonly EventRow[], void, undefined> {
		this.#assertOpen();
		const follower = new Follower();
		this.#followers.add(follower);
		try {
			this.#dropExpired();
			yield [...this.#rows.values()].map(({ row }) => row);
			for (;;) {
				await unlessAborted(follower.pushed, signal);
				this.#assertOpen();
				yield follower.take();
			}
		} finally {
			this.#followers.delete(follower);
		}
	}

	/** Ends what follows, and refuses writes. */
	close(): void {
		this.#closed = true;
		for (const follower of this.#followers) {
			follower.push([]);
		}
	}

	#dropExpired(): void {
		const nowMs = this.#clock.monotonic();
		for (const [key, { expiresMs }] of this.#rows) {
			if (expiresMs <= nowMs) {
				this.#rows.delete(key);
			}
		}
	}

	#assertOpen(): void {
		if (this.#closed) {
			throw new StorageUnavailable("the storage is closed");
		}
	}
}

/** The rows that one follower has not taken yet. */
class Follower {
	#rows: EventRow[] = [];
	#pushed = Promise.withResolvers<void>();

	get pushed(): Promise<void> {
		return this.#pushed.promise;
	}

	push(rows: readonly EventRow[]): void {
		this.#rows.push(...rows);
		this.#pushed.resolve();
	}

	take(): readonly EventRow[] {
		const rows = this.#rows;
		this.#rows = [];
		this.#pushed = Promise.withResolvers();
		return rows;
	}
}
