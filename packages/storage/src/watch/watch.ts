import type { Resource } from "@plinth/proto";
import type { Runtime, Timer } from "@plinth/runtime";
import type { WatchOptions } from "../backend.ts";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import { type ListQuery, matches } from "../query.ts";
import type { Snapshot } from "../snapshot.ts";
import type { WatchEvent } from "../watch-event.ts";
import { type Cursor, EventLog, type LogEntry } from "./event-log.ts";
import type { Delivery, WatchDeliveries } from "./watch-deliveries.ts";

/** The dependencies of a watch. */
export interface WatchContext {
	readonly query: ListQuery;
	readonly options: WatchOptions;
	readonly runtime: Runtime;
	readonly source: WatchSource;
	readonly deliveries: Pick<WatchDeliveries, "add">;
	catchUp(signal: AbortSignal): Promise<unknown>;
}

/** The state that a watch observes. */
export interface WatchSource {
	readonly log: EventLog;
	/** The newest revision of the state. */
	revision(): number;
	/** A snapshot that the watch holds until it has read it, or until `onEnded` is called. */
	snapshot(onEnded: () => void): Snapshot;
}

/** The source of a watch that is over, so that it retains nothing of the state. */
const noSource: WatchSource = {
	log: new EventLog(0, { logEvents: 0, logBytes: 0 }),
	revision: () => 0,
	snapshot: () => {
		throw new Error("the watch has ended");
	},
};

type Phase =
	| { readonly kind: "new" }
	| {
			readonly kind: "snapshot";
			readonly snapshot: Snapshot;
			readonly resources: Iterator<Resource>;
	  }
	| { readonly kind: "following" }
	/** The next call throws the reason. */
	| { readonly kind: "lost"; readonly reason: unknown }
	| { readonly kind: "ended" };

/** A bookmark that says nothing new is sent after so many intervals. */
const keepAliveIntervals = 6;

const finished: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The consumer that waits for the next event. */
interface Waiter {
	resolve(result: IteratorResult<WatchEvent, undefined>): void;
	reject(reason: unknown): void;
}

/**
 * One watch: first a snapshot, then a cursor in the event log of its family.
 *
 * It is driven by its consumer: `next` returns the next event at once, or parks the watch until the log adds an event
 * that the query matches. Then the watch takes its turn among the deliveries, once, however many revisions arrive
 * before that. Events that the query does not match don't reach a parked watch.
 *
 * A slow consumer blocks no other and retains no memory: if the log or the storage drops the position of
 * the watch, `lose` releases its snapshot and entries at once, and the next call throws the reason.
 */
export class Watch implements AsyncIterableIterator<WatchEvent, undefined>, Cursor, Delivery {
	readonly #context: Omit<WatchContext, "source">;
	#source: WatchSource;
	/** The newest call of `next` that has not settled. */
	#unsettled: Promise<IteratorResult<WatchEvent, undefined>> | undefined;
	#phase: Phase = { kind: "new" };
	/** The last entry that was consumed, or skipped. */
	#position: LogEntry;
	/** The next entry to be sent, found while looking ahead. */
	#found: LogEntry | undefined;
	/** The consumer waits, and no entry that was added since it began to wait matches the query. */
	#isParked = false;
	#waiter: Waiter | undefined;
	/** The call that is waiting, unless others overlap it. */
	#waiting: Promise<unknown> | undefined;
	/** Whether it is among the deliveries. */
	#isWoken = false;
	#bookmark: Timer | undefined;
	/** When the next bookmark is due, on the monotonic clock; `Infinity` without bookmarks. */
	#bookmarkDueMs = Number.POSITIVE_INFINITY;
	/** The revision of the last bookmark. */
	#bookmarked: number | undefined;
	/** When one is sent even at that revision, on the monotonic clock. */
	#keepAliveDueMs = 0;

	constructor({ source, ...context }: WatchContext) {
		this.#context = context;
		this.#source = source;
		this.#position = noSource.log.tail;
		const { afterVersion, bookmarkIntervalMs, bookmarkOnResume = false } = context.options;
		this.#planBookmark(bookmarkOnResume && afterVersion !== undefined ? 0 : bookmarkIntervalMs);
	}

	/** For the log. */
	get query(): ListQuery {
		return this.#context.query;
	}

	/** For the log. */
	get position(): LogEntry {
		return this.#position;
	}

	/** Called by the log and the storage when the watch has lost its position. */
	lose(reason: unknown): void {
		if (this.#phase.kind !== "ended" && this.#phase.kind !== "lost") {
			this.#leave({ kind: "lost", reason });
			if (this.#waiter !== undefined) {
				this.#deliverLater();
			}
		}
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** For one consumer: overlapping calls wait for each other. */
	next(): Promise<IteratorResult<WatchEvent, undefined>> {
		if (this.#unsettled !== undefined) {
			const take = () => this.#take();
			return this.#settling(this.#unsettled.then(take, take));
		}
		return this.#phase.kind === "new" ? this.#settling(this.#first()) : this.#take();
	}

	async #first(): Promise<IteratorResult<WatchEvent, undefined>> {
		try {
			await this.#begin();
		} catch (error) {
			this.#end();
			throw error;
		}
		return this.#take();
	}

	/**
	 * The next event if it is available; `undefined` if `next` would wait, or if the watch has ended. Must only be called
	 * while no call of `next` is pending.
	 *
	 * @throws the error that `next` would reject with.
	 */
	nextReady(): WatchEvent | undefined {
		const { kind } = this.#phase;
		if (kind === "new" || kind === "ended" || this.#unsettled !== undefined) {
			return undefined;
		}
		try {
			this.#context.options.signal.throwIfAborted();
			return this.#poll() ?? this.#dueBookmark();
		} catch (error) {
			this.#end();
			throw error;
		}
	}

	/** Returns the next event at once, or waits for it. */
	#take(): Promise<IteratorResult<WatchEvent, undefined>> {
		if (this.#phase.kind === "ended") {
			return Promise.resolve(finished);
		}
		try {
			this.#context.options.signal.throwIfAborted();
			const event = this.#poll() ?? this.#dueBookmark();
			if (event !== undefined) {
				return Promise.resolve({ done: false, value: event });
			}
		} catch (error) {
			this.#end();
			return Promise.reject(error);
		}
		const waiting = new Promise<IteratorResult<WatchEvent, undefined>>((resolve, reject) =>
			this.#wait({ resolve, reject }),
		);
		// Otherwise this is a call that has overlapped others, and is already remembered.
		if (this.#unsettled === undefined) {
			this.#unsettled = waiting;
			this.#waiting = waiting;
		}
		return waiting;
	}

	/** Remembers a call until it has settled, which is before its caller continues. */
	#settling(
		call: Promise<IteratorResult<WatchEvent, undefined>>,
	): Promise<IteratorResult<WatchEvent, undefined>> {
		const settled = () => {
			if (this.#unsettled === call) {
				this.#unsettled = undefined;
			}
		};
		this.#unsettled = call;
		call.then(settled, settled);
		return call;
	}

	async return(): Promise<IteratorResult<WatchEvent, undefined>> {
		const waiter = this.#end();
		waiter?.resolve(finished);
		return finished;
	}

	async #begin(): Promise<void> {
		const { options, catchUp } = this.#context;
		options.signal.throwIfAborted();
		const after = options.afterVersion === undefined ? undefined : revisionOf(options.afterVersion);
		// Another server may have issued a version that this one has not reached yet.
		const isAhead = after !== undefined && after > this.#source.revision();
		if (options.consistency === "strong" || isAhead) {
			await catchUp(options.signal);
			if (this.#phase.kind === "ended") {
				return;
			}
			options.signal.throwIfAborted();
		}
		// The rest is one synchronous step, so that every event is either in the snapshot or after the
		// position in the log.
		const { log, snapshot: take } = this.#source;
		if (after !== undefined) {
			this.#position = log.after(this.#reached(after));
			this.#phase = { kind: "following" };
		} else {
			const snapshot = take(() => this.lose(snapshotEnded()));
			this.#position = log.tail;
			this.#phase = {
				kind: "snapshot",
				snapshot,
				resources: snapshot.resources()[Symbol.iterator](),
			};
		}
		log.addCursor(this);
		options.signal.addEventListener("abort", this.#onAbort, { once: true });
	}

	#reached(revision: number): number {
		if (!(revision <= this.#source.revision())) {
			const { afterVersion = "" } = this.#context.options;
			throw new VersionCompacted(afterVersion, "this storage has not reached it");
		}
		return revision;
	}

	/** The next event, if there is one. */
	#poll(): WatchEvent | undefined {
		const phase = this.#phase;
		if (phase.kind === "lost") {
			throw phase.reason;
		}
		this.#source.log.assertContinuous(this.#position);
		if (phase.kind === "snapshot") {
			const { done, value } = phase.resources.next();
			if (!done) {
				return { kind: "upsert", resource: value };
			}
			this.#phase = { kind: "following" };
			phase.snapshot.release();
			return { kind: "end-of-snapshot", version: phase.snapshot.version };
		}
		const entry = this.#found ?? this.#seek();
		if (entry === undefined) {
			return undefined;
		}
		this.#found = this.#seek(entry.revision);
		return this.#found === undefined ? entry.last : entry.inner;
	}

	/** Moves on to the next entry that the query matches, within a revision if one is given. */
	#seek(revision?: number): LogEntry | undefined {
		const { query } = this.#context;
		for (;;) {
			const next = this.#position.next;
			if (next === undefined) {
				this.#source.log.assertContinuous(this.#position);
				return undefined;
			}
			if (revision !== undefined && next.revision !== revision) {
				return undefined;
			}
			this.#position = next;
			if (matches(query, next.resource)) {
				return next;
			}
		}
	}

	/**
	 * Bookmarks are sent at their interval even between events: the consumer may filter events before it
	 * passes them on, so that its own consumers can resume only from bookmarks.
	 */
	#planBookmark(inMs = this.#context.options.bookmarkIntervalMs): void {
		const { options, runtime } = this.#context;
		if (options.bookmarkIntervalMs !== undefined && inMs !== undefined) {
			this.#bookmarkDueMs = runtime.clock.monotonic() + inMs;
		}
	}

	#dueBookmark(): WatchEvent | undefined {
		const isDue =
			this.#bookmarkDueMs !== Number.POSITIVE_INFINITY &&
			this.#bookmarkDueMs <= this.#context.runtime.clock.monotonic();
		return isDue ? this.#takeBookmark() : undefined;
	}

	/**
	 * The bookmark to send at an interval. There is none if the last one was at the same revision, so that idle watches
	 * cost little: only every few intervals one is sent all the same, as proxies close connections that are silent.
	 */
	#takeBookmark(): WatchEvent | undefined {
		const { options, runtime } = this.#context;
		this.#planBookmark();
		const revision = this.#source.revision();
		const nowMs = runtime.clock.monotonic();
		if (revision === this.#bookmarked && nowMs < this.#keepAliveDueMs) {
			return undefined;
		}
		this.#bookmarked = revision;
		this.#keepAliveDueMs = nowMs + (options.bookmarkIntervalMs ?? 0) * keepAliveIntervals;
		return { kind: "bookmark", version: String(revision) };
	}

	/** Called when there is no event after the position. */
	#wait(waiter: Waiter): void {
		this.#waiter = waiter;
		this.#isParked = true;
		this.#position = noSource.log.tail;
		this.#armBookmark();
	}

	/** At the next interval, whatever is sent before. */
	#armBookmark(): void {
		if (this.#bookmarkDueMs !== Number.POSITIVE_INFINITY && this.#bookmark === undefined) {
			const { clock } = this.#context.runtime;
			this.#bookmark = clock.setTimer(this.#bookmarkDueMs - clock.monotonic(), () => {
				this.#bookmark = undefined;
				this.#onInterval();
			});
		}
	}

	#onInterval(): void {
		// If it is not parked, an event is on its way.
		if (!this.#isParked) {
			this.#deliver();
			return;
		}
		const bookmark = this.#takeBookmark();
		if (bookmark === undefined) {
			this.#armBookmark();
		} else {
			this.#isParked = false;
			this.#position = this.#source.log.tail;
			this.#stopWaiting()?.resolve({ done: false, value: bookmark });
		}
	}

	#stopWaiting(): Waiter | undefined {
		const waiter = this.#waiter;
		if (waiter !== undefined) {
			this.#waiter = undefined;
			if (this.#unsettled === this.#waiting) {
				this.#unsettled = undefined;
			}
			this.#waiting = undefined;
		}
		return waiter;
	}

	/** For the log: an entry that the query matches was added. */
	wake(entry: LogEntry): void {
		if (this.#isParked) {
			this.#isParked = false;
			this.#position = entry;
			this.#found = entry;
			this.#deliverLater();
		}
	}

	#deliverLater(): void {
		if (!this.#isWoken) {
			this.#isWoken = true;
			this.#context.deliveries.add(this);
		}
	}

	/** For the deliveries. */
	get isOver(): boolean {
		return this.#waiter === undefined;
	}

	/** For the deliveries. */
	deliver(): void {
		this.#isWoken = false;
		// It may have been woken by an event that it has sent since, when a bookmark was due.
		if (!this.#isParked) {
			this.#deliver();
		}
	}

	/** A consumer that is not waiting receives the reason on its next call. */
	readonly #onAbort = (): void => {
		const { reason } = this.#context.options.signal;
		if (this.#waiter === undefined) {
			this.lose(reason);
		} else {
			this.#end()?.reject(reason);
		}
	};

	/** Sends the waiting consumer the event that has woken the watch. */
	#deliver(): void {
		if (this.#waiter === undefined) {
			return;
		}
		let event: WatchEvent | undefined;
		try {
			event = this.#poll();
		} catch (error) {
			this.#end()?.reject(error);
			return;
		}
		if (event !== undefined) {
			this.#stopWaiting()?.resolve({ done: false, value: event });
		}
	}

	#end(): Waiter | undefined {
		const waiter = this.#stopWaiting();
		this.#leave({ kind: "ended" });
		return waiter;
	}

	/** Releases everything that the watch retains of the state. */
	#leave(phase: Extract<Phase, { kind: "ended" | "lost" }>): void {
		if (this.#phase.kind === "snapshot") {
			this.#phase.snapshot.release();
		}
		this.#phase = phase;
		this.#bookmark?.cancel();
		this.#bookmark = undefined;
		this.#found = undefined;
		this.#isParked = false;
		this.#position = noSource.log.tail;
		this.#source.log.removeCursor(this);
		if (this.#waiter === undefined) {
			this.#source = noSource;
		}
		this.#context.options.signal.removeEventListener("abort", this.#onAbort);
	}
}

function snapshotEnded(): WatchClosed {
	return new WatchClosed(
		"the watch kept too much memory in use before it had read its snapshot; discard the state built from it and watch again",
	);
}

/** The revision of a version; NaN if it is none. */
function revisionOf(version: string): number {
	return /^(0|[1-9]\d*)$/.test(version) ? Number(version) : Number.NaN;
}
