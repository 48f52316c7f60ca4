import { type EventRecord, type EventRecorder, newUlid } from "@plinth/resource";
import { aborted, Backoff, type Logger, type Runtime, sleep } from "@plinth/runtime";
import { type EventRow, type EventStorage, maxEventBytes, maxEventRows } from "@plinth/storage";
import { EventChanges } from "./event-changes.ts";
import { decodeRow, encodeRow } from "./event-rows.ts";
import { OtherEvents } from "./other-events.ts";
import { defaultEventLimits, type EventLimits, OwnEvents } from "./own-events.ts";
import type { RecordedEvent } from "./recorded-event.ts";

/** Options of an event log. */
export interface EventLogOptions {
	readonly storage: EventStorage;
	/** The name of this server in its events. */
	readonly server: string;
	/** Whether other servers write to the storage. If not, this log continues the one of an earlier process. */
	readonly isShared: boolean;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Limits that differ from `defaultEventLimits`. */
	readonly limits?: Partial<EventLimits>;
}

/** What an event log holds. */
export interface EventLogState {
	/** Events that this server has recorded. */
	readonly own: number;
	/** Events that others have recorded. */
	readonly others: number;
	/** Resources whose events are not stored yet. */
	readonly unstored: number;
	/** How often an event was recorded since the start. */
	readonly recorded: number;
}

/** Between two writes, in milliseconds. */
const writeIntervalMs = 1_000;

/** How often old events are dropped, in milliseconds. */
const sweepIntervalMs = 60_000;

/** How long closing waits for what is not stored yet, in milliseconds. */
const closeLimitMs = 2_000;

/** How many events wait for a reader. */
const waitingChanges = 10_000;

/** The owner of the rows in a storage that is not shared. */
const onlyOwner = "only";

/**
 * The events of all servers of a storage.
 *
 * An event is recorded in memory, and seen by readers of this server at once. Once a second, the events of the resources
 * that have changed are written, as one row for each resource and server: at most 100 rows and 512 KiB, those that wait
 * longest first. What others write is followed. No write is retried for a reader: a storage that fails costs events that
 * others do not see, and nothing else.
 *
 * Invariants:
 * - A row is written only by its owner, one write at a time, so that it never goes back to an earlier state.
 * - Nothing is written before the rows of an earlier process with the same owner were read, so that none of them is lost.
 */
export class EventLog implements EventRecorder {
	readonly #options: EventLogOptions;
	readonly #limits: EventLimits;
	readonly #owner: string;
	readonly #own: OwnEvents;
	readonly #others: OtherEvents;
	readonly #changes = new Set<EventChanges>();
	/** Aborts when the log closes: what is not stored yet is written without pauses. */
	readonly #closing = new AbortController();
	/** Aborts when everything ends. */
	readonly #end = new AbortController();
	readonly #loaded = Promise.withResolvers<void>();
	#isLoaded = false;
	#changed = Promise.withResolvers<void>();
	#running: Promise<unknown> | undefined;
	#recorded = 0;

	constructor(options: EventLogOptions) {
		const { runtime, server, isShared } = options;
		this.#options = options;
		this.#limits = { ...defaultEventLimits, ...options.limits };
		const process = newUlid(runtime);
		this.#owner = isShared ? process : onlyOwner;
		let ids = 0;
		this.#own = new OwnEvents(this.#limits, server, () => `${process}-${++ids}`);
		this.#others = new OtherEvents((event) => this.#notify(event));
	}

	/** What the log holds. */
	get state(): EventLogState {
		return {
			own: this.#own.size,
			others: this.#others.size,
			unstored: this.#own.changes,
			recorded: this.#recorded,
		};
	}

	/** Resolves when the stored events were read. */
	get loaded(): Promise<void> {
		return this.#loaded.promise;
	}

	/** Starts to read and write the storage. */
	start(): void {
		this.#running ??= Promise.all([this.#follow(), this.#write(), this.#sweep()]);
	}

	/** Stores what is not stored yet, for up to two seconds, and stops. */
	async close(): Promise<void> {
		const { clock } = this.#options.runtime;
		this.#closing.abort();
		if (this.#running === undefined) {
			this.#end.abort();
		}
		const deadline = clock.setTimer(closeLimitMs, () => this.#end.abort());
		await Promise.race([this.#running, aborted(this.#end.signal)]);
		deadline.cancel();
	}

	record(record: EventRecord): void {
		this.#recorded += 1;
		this.#notify(this.#own.record(record, this.#options.runtime.clock.now()));
		this.#changed.resolve();
	}

	/** The events of a resource, in no order. @param key - see `nameKey`. */
	of(key: string): readonly RecordedEvent[] {
		return this.#current([...this.#own.of(key), ...this.#others.of(key)]);
	}

	/** The events of all resources, in no order. */
	all(): readonly RecordedEvent[] {
		return this.#current([...this.#own.all(), ...this.#others.all()]);
	}

	/** The events that change from now on. Dispose it to end that. */
	changes(): EventChanges {
		const changes = new EventChanges(waitingChanges, (ended) => this.#changes.delete(ended));
		this.#changes.add(changes);
		return changes;
	}

	#current(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
		const afterMs = this.#options.runtime.clock.now() - this.#limits.retentionMs;
		return events.filter(({ lastMs }) => lastMs > afterMs);
	}

	#notify(event: RecordedEvent): void {
		for (const changes of this.#changes) {
			changes.add(event);
		}
	}

	async #sweep(): Promise<void> {
		const { clock } = this.#options.runtime;
		while (await this.#sleep(sweepIntervalMs)) {
			const nowMs = clock.now();
			this.#own.expire(nowMs);
			this.#others.expire(nowMs - this.#limits.retentionMs);
			if (this.#own.hasChanges) {
				this.#changed.resolve();
			}
		}
	}

	async #write(): Promise<void> {
		const backoff = this.#backoff();
		const closing = aborted(this.#closing.signal);
		await Promise.race([this.#loaded.promise, aborted(this.#end.signal)]);
		while (!this.#end.signal.aborted) {
			await Promise.race([this.#changed.promise, closing]);
			this.#changed = Promise.withResolvers();
			const isWritten = !this.#own.hasChanges || (await this.#writeOnce());
			const isClosing = this.#closing.signal.aborted;
			if (isClosing && (!isWritten || !this.#own.hasChanges)) {
				this.#end.abort();
			}
			if (this.#own.hasChanges) {
				this.#changed.resolve();
			}
			if (isWritten) {
				backoff.reset();
			}
			await this.#sleep(isWritten ? writeIntervalMs : backoff.nextDelayMs(), this.#closing.signal);
		}
	}

	/** Writes the rows that wait longest. Returns whether that has succeeded. */
	async #writeOnce(): Promise<boolean> {
		const { storage, logger } = this.#options;
		const changed = this.#own.takeChanged(maxEventRows);
		const rows: EventRow[] = [];
		let bytes = 0;
		for (const row of changed) {
			const encoded = encodeRow(this.#owner, row);
			bytes += encoded.body?.byteLength ?? 0;
			// One row is never too large: see `EventLimits`.
			if (bytes > maxEventBytes) {
				break;
			}
			rows.push(encoded);
		}
		try {
			await storage.write(rows, { ttlMs: this.#limits.retentionMs });
			this.#own.failed(changed.slice(rows.length));
			return true;
		} catch (error) {
			this.#own.failed(changed);
			const why = error instanceof Error ? error.message : String(error);
			logger.debug({ why }, "could not store events");
			return false;
		}
	}

	async #follow(): Promise<void> {
		const { storage, logger } = this.#options;
		const { signal } = this.#end;
		const backoff = this.#backoff();
		while (!signal.aborted) {
			try {
				let isFirst = true;
				for await (const rows of storage.follow(signal)) {
					this.#take(rows, isFirst);
					isFirst = false;
					backoff.reset();
				}
			} catch (error) {
				if (!signal.aborted) {
					const why = error instanceof Error ? error.message : String(error);
					logger.debug({ why }, "could not follow the events of the storage");
				}
			}
			await this.#sleep(backoff.nextDelayMs());
		}
	}

	#take(rows: readonly EventRow[], isAll: boolean): void {
		const nowMs = this.#options.runtime.clock.now();
		const decoded = rows.flatMap((row) => {
			try {
				return [decodeRow(row)];
			} catch (error) {
				// Written by a newer server, or damaged: nobody needs it.
				this.#options.logger.debug({ err: error }, "skipped a row of events");
				return [];
			}
		});
		if (isAll && !this.#isLoaded) {
			for (const { owner, key, events } of decoded) {
				if (owner === this.#owner) {
					this.#own.adopt(key, events, nowMs);
				}
			}
			this.#isLoaded = true;
			this.#loaded.resolve();
			if (this.#own.hasChanges) {
				this.#changed.resolve();
			}
		}
		const others = decoded.filter(({ owner }) => owner !== this.#owner);
		if (isAll) {
			this.#others.replace(others);
		} else {
			this.#others.apply(others);
		}
	}

	#backoff(): Backoff {
		return new Backoff({ baseMs: 500, maxMs: 30_000, ...this.#options.runtime });
	}

	/** Waits; returns `false` if the signal has aborted meanwhile. */
	async #sleep(delayMs: number, signal = this.#end.signal): Promise<boolean> {
		try {
			await sleep(this.#options.runtime.clock, delayMs, signal);
			return true;
		} catch {
			return false;
		}
	}
}
