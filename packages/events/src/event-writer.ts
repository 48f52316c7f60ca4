import { Backoff, type Logger, type Runtime, sleep, unlessAborted } from "@plinth/runtime";
import { type EventRow, type EventStorage, maxEventBytes, maxEventRows } from "@plinth/storage";
import { encodeRow } from "./event-rows.ts";
import type { ChangedRow, OwnEvents } from "./own-events.ts";

/** Options of a writer. */
export interface EventWriterOptions {
	readonly storage: EventStorage;
	readonly own: OwnEvents;
	/** The owner of the rows. */
	readonly owner: string;
	/** How long the storage keeps a row that is not written again. */
	readonly ttlMs: number;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** Between two writes, in milliseconds. */
const intervalMs = 1_000;

/**
 * How many bytes a server writes at once, and a second for long: etcd keeps what was replaced until it is compacted, and
 * refuses all writes once its quota is used up. This is 58 MB an hour.
 */
const budget = { burst: maxEventBytes, perSecond: 16 * 1024 } as const;

/** Stores the events of a server: once a second those of the resources that have waited longest. */
export class EventWriter {
	readonly #options: EventWriterOptions;
	#changed = Promise.withResolvers<void>();
	/** How many rows the next write has: fewer after a failure, since it may be one of them that the storage refuses. */
	#rows = maxEventRows;
	#bytes: number = budget.burst;
	#paidMs: number;
	#isFailing = false;

	constructor(options: EventWriterOptions) {
		this.#options = options;
		this.#paidMs = options.runtime.clock.monotonic();
	}

	/** Something may have changed. */
	wake(): void {
		this.#changed.resolve();
	}

	/**
	 * Writes until `closing` aborts; then what is not stored yet, without pauses, as long as that succeeds.
	 *
	 * @param end - ends everything.
	 */
	async run(closing: AbortSignal, end: AbortSignal): Promise<void> {
		const { own, runtime } = this.#options;
		const backoff = new Backoff({ baseMs: 500, maxMs: 30_000, ...runtime });
		const pause = (ms: number) => sleep(runtime.clock, ms, closing).catch(() => {});
		while (!end.aborted) {
			await unlessAborted(this.#changed.promise, closing).catch(() => {});
			this.#changed = Promise.withResolvers();
			if (closing.aborted) {
				own.storeCounts();
			}
			const before = own.changes;
			const isWritten = before === 0 || (await this.#write(closing.aborted));
			if (closing.aborted && (!isWritten || own.changes === 0 || own.changes >= before)) {
				return;
			}
			if (own.hasChanges) {
				this.wake();
			}
			if (isWritten) {
				backoff.reset();
			}
			await pause(isWritten ? intervalMs : backoff.nextDelayMs());
		}
	}

	/** Writes the rows that wait longest, unless too much was written before. Returns whether that has succeeded. */
	async #write(isLast: boolean): Promise<boolean> {
		const { own, storage, logger, runtime, ttlMs } = this.#options;
		this.#earn();
		if (this.#bytes <= 0 && !isLast) {
			return true;
		}
		const changed = own.takeChanged(this.#rows, runtime.clock.now());
		const { rows, taken } = this.#encode(changed, isLast ? maxEventBytes : this.#bytes);
		own.failed(changed.slice(taken));
		try {
			await storage.write(rows, { ttlMs });
			this.#rows = Math.min(maxEventRows, this.#rows * 2);
			this.#isFailing = false;
			return true;
		} catch (error) {
			own.failed(changed.slice(0, taken));
			this.#rows = Math.max(1, Math.floor(this.#rows / 2));
			const why = error instanceof Error ? error.message : String(error);
			logger[this.#isFailing ? "debug" : "warn"]({ why }, "could not store events");
			this.#isFailing = true;
			return false;
		}
	}

	/** The first of the rows that the budget allows, at least one. `taken` counts those that can't be encoded too. */
	#encode(
		changed: readonly ChangedRow[],
		bytes: number,
	): { readonly rows: readonly EventRow[]; readonly taken: number } {
		const { owner, logger } = this.#options;
		const rows: EventRow[] = [];
		let [size, taken] = [0, 0];
		for (const row of changed) {
			let encoded: EventRow;
			try {
				encoded = encodeRow(owner, row);
			} catch (error) {
				logger.debug({ err: error, key: row.key }, "can't store an event");
				taken += 1;
				continue;
			}
			const more = Buffer.byteLength(encoded.key) + (encoded.body?.byteLength ?? 0);
			if (size > 0 && size + more > bytes) {
				break;
			}
			size += more;
			taken += 1;
			rows.push(encoded);
		}
		this.#bytes -= size;
		return { rows, taken };
	}

	#earn(): void {
		const nowMs = this.#options.runtime.clock.monotonic();
		const earned = ((nowMs - this.#paidMs) / 1_000) * budget.perSecond;
		this.#bytes = Math.min(budget.burst, this.#bytes + earned);
		this.#paidMs = nowMs;
	}
}
