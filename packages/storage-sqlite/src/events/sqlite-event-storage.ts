import { aborted, type Clock } from "@plinth/runtime";
import {
	type EventRow,
	type EventStorage,
	type EventWriteOptions,
	StorageUnavailable,
} from "@plinth/storage";
import type { GroupCommit } from "../group-commit/group-commit.ts";
import { type StorageThread, WriteFailure } from "../thread/storage-thread.ts";

/** The dependencies of the rows of events. */
export interface SqliteEventsContext {
	readonly thread: Pick<StorageThread, "writeEvents" | "readEvents">;
	/** Between whose groups rows are written and read. */
	readonly groups: Pick<GroupCommit, "alone" | "break">;
	/** Its wall-clock time says when rows expire. */
	readonly clock: Clock;
}

/**
 * Rows of events in the file of the storage, in a table of their own (event-table.ts).
 *
 * ```
 *   commits   ▌▌▌▌   ▌▌▌▌   ▌▌▌▌   ▌▌▌▌      one transaction for each group
 *   events         ░      ░      ░           a write, or a page of a read
 * ```
 *
 * A commit waits for one transaction of events at most. No page is read after a write that began later than the read.
 */
export class SqliteEventStorage implements EventStorage {
	readonly #context: SqliteEventsContext;
	readonly #closing = new AbortController();
	/** Aborts when the file is replaced. */
	#replaced = new AbortController();
	/** Settles when all earlier writes and reads have. */
	#earlier: Promise<unknown> = Promise.resolve();

	constructor(context: SqliteEventsContext) {
		this.#context = context;
	}

	async write(rows: readonly EventRow[], { ttlMs }: EventWriteOptions): Promise<void> {
		this.#closing.signal.throwIfAborted();
		await this.#inTurn(() => this.#alone(() => this.#write(rows, ttlMs)));
	}

	async *follow(signal: AbortSignal): AsyncGenerator<readonly EventRow[], void, undefined> {
		const stop = AbortSignal.any([signal, this.#closing.signal, this.#replaced.signal]);
		stop.throwIfAborted();
		yield await this.#inTurn(() => this.#read(stop));
		await aborted(stop);
		stop.throwIfAborted();
	}

	/** The file was replaced by one without events: ends what follows, which has rows that are no longer stored. */
	replaced(): void {
		const { signal } = this.#replaced;
		if (!signal.aborted) {
			this.#replaced.abort(
				new StorageUnavailable("the storage was restored from a backup, which has no events"),
			);
			this.#replaced = new AbortController();
		}
	}

	/** Refuses writes and reads from now on, and ends what follows. What the thread does already completes. */
	close(): void {
		this.#closing.abort(new StorageUnavailable("the storage is closed"));
	}

	async #write(rows: readonly EventRow[], ttlMs: number): Promise<void> {
		const { thread, groups } = this.#context;
		const nowMs = this.#nowMs();
		try {
			await thread.writeEvents({ nowMs, expiresMs: nowMs + Math.ceil(ttlMs), rows });
		} catch (error) {
			const why = error instanceof Error ? error.message : String(error);
			if (error instanceof WriteFailure && error.diskFull) {
				throw new StorageUnavailable(`the disk of the storage is full: ${why}`, { cause: error });
			}
			if (error instanceof WriteFailure && error.eventTable) {
				throw new StorageUnavailable(`the table of events can't be written: ${why}`, {
					cause: error,
				});
			}
			// The content of the disk is unknown, as after a commit that could not be written.
			const failure = new StorageUnavailable(
				`the storage failed to write, and accepts no commits until it is opened again: ${why}`,
				{ cause: error },
			);
			groups.break(failure);
			throw failure;
		}
	}

	/** All rows, in pages between which commits are written. */
	async #read(stop: AbortSignal): Promise<readonly EventRow[]> {
		const { thread } = this.#context;
		const nowMs = this.#nowMs();
		const rows: EventRow[] = [];
		for (let more = true; more; ) {
			stop.throwIfAborted();
			const after = rows.at(-1)?.key;
			const page = await this.#alone(() => thread.readEvents(nowMs, after));
			rows.push(...page.rows);
			more = page.more;
		}
		stop.throwIfAborted();
		return rows;
	}

	/** Runs an action after all earlier ones. */
	async #inTurn<T>(action: () => Promise<T>): Promise<T> {
		const running = this.#earlier.then(action);
		this.#earlier = running.catch(() => {});
		return running;
	}

	/** Runs an action between two groups of commits. */
	async #alone<T>(action: () => Promise<T>): Promise<T> {
		this.#closing.signal.throwIfAborted();
		try {
			return await this.#context.groups.alone(action);
		} catch (error) {
			if (error instanceof StorageUnavailable) {
				throw error;
			}
			const why = error instanceof Error ? error.message : String(error);
			throw new StorageUnavailable(`can't read the events of the storage: ${why}`, {
				cause: error,
			});
		}
	}

	#nowMs(): number {
		return Math.floor(this.#context.clock.now());
	}
}
