import { type EventRecord, type EventRecorder, newUlid } from "@plinth/resource";
import { aborted, Backoff, type Logger, type Runtime, sleep, unlessAborted } from "@plinth/runtime";
import type { EventRow, EventStorage } from "@plinth/storage";
import { EventChanges } from "./event-changes.ts";
import { type DecodedRow, decodeRow } from "./event-rows.ts";
import { EventWriter } from "./event-writer.ts";
import { mergeEvents } from "./merge-events.ts";
import { OtherEvents } from "./other-events.ts";
import { defaultEventLimits, type EventLimits, isCurrent, OwnEvents } from "./own-events.ts";
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

/** How often old events are dropped, in milliseconds. */
const sweepIntervalMs = 60_000;

/** How long closing waits for what is not stored yet, in milliseconds. */
const closeLimitMs = 2_000;

/** How many events wait for a reader. */
const waitingChanges = 1_000;

/** How many rows are decoded before others get their turn on the event loop. */
const rowsPerTurn = 500;

/** The owner of the rows in a storage that is not shared. */
const onlyOwner = "only";

/**
 * The events of all servers of a storage.
 *
 * An event is recorded in memory, and seen by readers of this server at once. The events of the resources that have
 * changed are written by `EventWriter`, as one row for each resource and process. What others write is followed.
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
	readonly #writer: EventWriter;
	#isLoaded = false;
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
		this.#writer = new EventWriter({
			...options,
			own: this.#own,
			owner: this.#owner,
			ttlMs: this.#limits.retentionMs,
		});
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

	/** Starts to read and write the storage. */
	start(): void {
		const parts = () => [this.#follow(), this.#write(), this.#sweep()];
		this.#running ??= Promise.all(
			parts().map((part) =>
				part.catch((error) =>
					this.#options.logger.error({ err: error }, "the log of events has failed"),
				),
			),
		);
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
		try {
			const event = this.#own.record(record, Math.floor(this.#options.runtime.clock.now()));
			if (event !== undefined) {
				this.#notify(event);
				this.#writer.wake();
			}
		} catch (error) {
			// A caller that records an event has other things to do.
			this.#options.logger.debug({ err: error }, "could not record an event");
		}
	}

	/** The events of a resource, in no order. @param key - see `nameKey`. */
	of(key: string): readonly RecordedEvent[] {
		return mergeEvents(this.#current([...this.#own.of(key), ...this.#others.of(key)]));
	}

	/** The events of all resources, in no order. */
	all(): readonly RecordedEvent[] {
		return mergeEvents(this.#current([...this.#own.all(), ...this.#others.all()]));
	}

	/** The events that match, and change from now on. Dispose it to end that. */
	changes(matches: (event: RecordedEvent) => boolean): EventChanges {
		const changes = new EventChanges(waitingChanges, matches, (ended) =>
			this.#changes.delete(ended),
		);
		this.#changes.add(changes);
		return changes;
	}

	#current(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
		const nowMs = this.#options.runtime.clock.now();
		return events.filter((event) => isCurrent(event, nowMs, this.#limits.retentionMs));
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
			this.#own.storeCounts();
			this.#others.expire(nowMs, this.#limits.retentionMs);
			this.#writer.wake();
		}
	}

	/** Nothing is written before the rows of an earlier process were read. */
	async #write(): Promise<void> {
		await unlessAborted(this.#loaded.promise, this.#end.signal).catch(() => {});
		await this.#writer.run(this.#closing.signal, this.#end.signal);
		this.#end.abort();
	}

	async #follow(): Promise<void> {
		const { storage, logger } = this.#options;
		const { signal } = this.#end;
		const backoff = new Backoff({ baseMs: 500, maxMs: 30_000, ...this.#options.runtime });
		while (!signal.aborted) {
			try {
				let isFirst = true;
				for await (const rows of storage.follow(signal)) {
					await this.#take(rows, isFirst);
					if (!isFirst) {
						backoff.reset();
					}
					isFirst = false;
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

	async #take(rows: readonly EventRow[], isAll: boolean): Promise<void> {
		const isOwn = ({ key }: EventRow) => key.startsWith(`${this.#owner}/`);
		if (isAll && !this.#isLoaded) {
			const stored = await this.#decode(rows.filter(isOwn));
			this.#own.adoptAll(stored, this.#options.runtime.clock.now());
			this.#isLoaded = true;
			this.#loaded.resolve();
			this.#writer.wake();
		} else if (isAll) {
			const length = this.#owner.length + 1;
			this.#own.storeMissing(new Set(rows.filter(isOwn).map(({ key }) => key.slice(length))));
			this.#writer.wake();
		}
		const others = await this.#decode(rows.filter((row) => !isOwn(row)));
		if (isAll) {
			this.#others.replace(others);
		} else {
			this.#others.apply(others);
		}
	}

	async #decode(rows: readonly EventRow[]): Promise<readonly DecodedRow[]> {
		const { logger, runtime } = this.#options;
		const decoded: DecodedRow[] = [];
		for (const [at, row] of rows.entries()) {
			if (at > 0 && at % rowsPerTurn === 0) {
				await runtime.scheduler.turn();
			}
			try {
				decoded.push(decodeRow(row));
			} catch (error) {
				// Written by a newer server, or damaged: nobody needs it.
				logger.debug({ err: error }, "skipped a row of events");
			}
		}
		return decoded;
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
