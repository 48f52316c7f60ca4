import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import type { StorageLimits } from "../limits.ts";
import { memorySize } from "../state-store/resource-size.ts";
import type { WatchEvent } from "../watch-event.ts";
import { type DataAccount, EventData, LogData } from "./derived-data.ts";
import { type Interested, InterestIndex } from "./interest-index.ts";

/**
 * An event of one type family, stored once for all watches. Immutable except for its link in the chain.
 */
export class LogEntry {
	readonly revision: number;
	readonly kind: "upsert" | "delete";
	readonly resource: Resource;
	readonly previous: Resource | undefined;
	/** The next event, if any; removed when the entry is cut off. */
	next: LogEntry | undefined = undefined;
	/** Whether entries after this one were dropped: a cursor at this entry has lost some. */
	cut = false;
	/** The bytes retained by this entry: those of the replaced resource; its own resource is in the state. */
	readonly bytes: number;
	/** When it was applied, in milliseconds since 1970. */
	readonly atMs: number;
	/** Who has committed it, if this server has. */
	readonly writtenBy: string | undefined;
	/** The derived data of the log, while the entry is in one. */
	#logData: LogData | undefined;
	#data: EventData | undefined;
	#last: WatchEvent | undefined;
	#inner: WatchEvent | undefined;

	constructor(
		revision: number,
		kind: "upsert" | "delete",
		resource: Resource,
		previous: Resource | undefined,
		{ replacedBytes, atMs, writtenBy }: EntryOrigin = unknownOrigin,
	) {
		this.revision = revision;
		this.kind = kind;
		this.resource = resource;
		this.previous = previous;
		this.bytes = entryBytes + (replacedBytes ?? memorySize(this.replaced));
		this.atMs = atMs;
		this.writtenBy = writtenBy;
	}

	/** The resource that the entry replaces or deletes. */
	get replaced(): Resource | undefined {
		return this.kind === "delete" ? this.resource : this.previous;
	}

	/** The event for watches that receive no more of this revision. One object for all of them. */
	get last(): WatchEvent {
		this.#last ??= this.#event(String(this.revision));
		return this.#last;
	}

	/** The event for watches that receive more of this revision. One object for all of them. */
	get inner(): WatchEvent {
		this.#inner ??= this.#event(undefined);
		return this.#inner;
	}

	/** The entry was added to a log. */
	enter(data: LogData): void {
		this.#logData = data;
	}

	/** The log has dropped the entry. */
	leave(): void {
		this.#logData = undefined;
		this.#data?.leave();
	}

	#event(version: string | undefined): WatchEvent {
		const { kind, resource, previous } = this;
		this.#data ??= new EventData(this.#logData);
		const shared =
			version === undefined ? { derived: this.#data } : { derived: this.#data, version };
		return freezeInDevelopment(
			kind === "upsert" && previous !== undefined
				? { kind, resource, previous, ...shared }
				: { kind, resource, ...shared },
		);
	}
}

/** What is known of an event beside its resources. */
interface EntryOrigin {
	/** The size of the replaced or deleted resource, if known. */
	readonly replacedBytes?: number | undefined;
	/** When it was applied, in milliseconds since 1970. */
	readonly atMs: number;
	/** Who has committed it, if this server has. */
	readonly writtenBy?: string | undefined;
}

const unknownOrigin: EntryOrigin = { atMs: 0 };

/** The empty resource of the base of a new log. */
const before = freezeInDevelopment(create(ResourceSchema));

/** The approximate size of an entry with its two events. */
const entryBytes = 256;

/** The share of the maximum size of a log that may be derived data. */
const derivedShare = 1 / 8;

/** Entries between two signposts. */
const signpostEvery = 256;

/** The minimum of dropped entries between two sweeps, unless the entries are large. */
const leastEntriesPerSweep = 256;
/** The share of the maximum size of a log that is dropped between two sweeps. */
const sweepShare = 1 / 8;

/** The position of a watch in a log. */
export interface Cursor extends Interested {
	/** The last entry that was consumed, or skipped; any entry that is never cut off, while the cursor is parked. */
	readonly position: LogEntry;
	/**
	 * An entry that the query matches was added to the log. If the cursor is parked, it continues with that entry;
	 * otherwise it has a position before it.
	 */
	wake(entry: LogEntry): void;
	/** Drops all references to entries and snapshots, and fails with the reason from now on. */
	lose(reason: WatchClosed): void;
}

/** Accounts for the memory that a log retains. */
export interface LogAccount extends DataAccount {
	/** The log no longer retains the entry and the resource that it replaced. */
	dropped(entry: LogEntry): void;
}

const uncounted: LogAccount = { hasRoom: true, changed() {}, dropped() {} };

/**
 * The events of one type family: a chain of entries, linked forward.
 *
 * ```
 *      cut off        |              kept
 *   ╳──╴  ╳──╴  ╳──╴  |  base ──▶ e1 ──▶ e2 ──▶ e3 ──▶ … ──▶ tail
 *         ▲           |           ▲              ▲            ▲
 *      cursor:        |       a slow cursor   another     most cursors
 *      WatchClosed    |
 * ```
 *
 * A cursor refers to the entry that it consumed last, and follows the links from there. A cursor that has reached the
 * tail, and whose consumer waits, parks: it has no position until an entry that its query matches is added, which is
 * handed to it. So entries cost nothing for parked cursors that they don't concern, and never cut those off.
 *
 * Invariant: no entry that was added since a cursor parked matches its query. For the cursor is in the index of
 * interests from its begin to its end, `append` wakes all that the index finds for the entry, and parking, like
 * continuing from the tail, is one synchronous step that no `append` interrupts.
 *
 * When the chain exceeds its limits, the oldest entry becomes the base,
 * and the former base is cut off: its link is removed, so that a cursor at it (or before) retains one
 * entry and not the chain, and learns from `cut` that it has missed events.
 *
 * That one entry may be large, and many such cursors may have consumers that never call again. So the log
 * also keeps a set of its open cursors: after dropping a bounded part of the chain it sweeps them, and releases
 * the entries of those that have lost their position. The part grows with the number of cursors, so that
 * the cost of sweeps per event stays constant.
 *
 * `floor` is the newest revision with an entry that was dropped: a watch that has seen everything up to it
 * can continue from the rest without a gap. Signposts at every 256th entry find a revision without
 * walking the whole chain.
 */
export class EventLog {
	readonly #limits: Pick<StorageLimits, "logEvents" | "logBytes">;
	readonly #account: LogAccount;
	#base: LogEntry;
	#tail: LogEntry;
	#floor: number;
	#events = 0;
	#bytes = 0;
	#untilSignpost = signpostEvery;
	#signposts: LogEntry[] = [];
	/** The cursors of all watches that have begun and not ended. */
	readonly #cursors = new Set<Cursor>();
	/** The same cursors, by what their queries select. */
	readonly #interests = new InterestIndex<Cursor>();
	#droppedEvents = 0;
	#droppedBytes = 0;
	#closed: WatchClosed | undefined;
	readonly #data: LogData;

	/**
	 * @param revision The revision of the state, whose events and earlier ones are not in the log.
	 * @param atMs When that revision was loaded, in milliseconds since 1970.
	 */
	constructor(
		revision: number,
		limits: Pick<StorageLimits, "logEvents" | "logBytes">,
		account: LogAccount = uncounted,
		atMs = 0,
	) {
		this.#limits = limits;
		this.#account = account;
		this.#data = new LogData(limits.logBytes * derivedShare, account);
		this.#floor = revision;
		// Represents everything before: cursors start after it and never read it.
		this.#base = new LogEntry(revision, "delete", before, undefined, { atMs });
		this.#tail = this.#base;
	}

	/** The number of events kept. */
	get events(): number {
		return this.#events;
	}

	/** The bytes retained only by the log. */
	get bytes(): number {
		return this.#bytes + this.#data.bytes;
	}

	/** The position before the first event that is kept. Its own event is not kept. */
	get base(): LogEntry {
		return this.#base;
	}

	/** The newest revision with an entry that was dropped: watches can resume after it, and after all later ones. */
	get floor(): number {
		return this.#floor;
	}

	/** The number of cursors: of the watches that have begun and not ended. */
	get cursors(): number {
		return this.#cursors.size;
	}

	/** The position of a cursor at the end of the log. */
	get tail(): LogEntry {
		return this.#tail;
	}

	/**
	 * The position of a cursor that has seen everything up to a revision.
	 *
	 * @throws VersionCompacted if events after that revision are no longer kept.
	 */
	after(revision: number): LogEntry {
		if (revision < this.#floor) {
			throw new VersionCompacted(String(revision), "the log no longer reaches back to it");
		}
		if (revision >= this.#tail.revision) {
			return this.#tail;
		}
		let entry = this.#base;
		for (let low = 0, high = this.#signposts.length; low < high; ) {
			const middle = (low + high) >>> 1;
			const signpost = this.#signposts[middle];
			if (signpost !== undefined && signpost.revision <= revision) {
				entry = signpost;
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		while (entry.next !== undefined && entry.next.revision <= revision) {
			entry = entry.next;
		}
		return entry;
	}

	/**
	 * Adds an event, and wakes the watches that it concerns. They deliver later, when the revision has been added
	 * completely.
	 */
	append(entry: LogEntry): void {
		entry.enter(this.#data);
		this.#tail.next = entry;
		this.#tail = entry;
		this.#events += 1;
		this.#bytes += entry.bytes;
		this.#account.changed(entry.bytes);
		this.#untilSignpost -= 1;
		if (this.#untilSignpost === 0) {
			this.#untilSignpost = signpostEvery;
			this.#signposts.push(entry);
		}
		this.#interests.concerned(entry.resource, (cursor) => cursor.wake(entry));
	}

	/** Drops the entries over the limits. Call it after adding a revision. */
	trim(): void {
		this.#dropOver(this.#limits.logEvents, this.#limits.logBytes);
		if (
			this.#droppedEvents > Math.max(leastEntriesPerSweep, this.#cursors.size) ||
			this.#droppedBytes > this.#limits.logBytes * sweepShare
		) {
			this.sweep();
		}
	}

	/** Drops the oldest entries until the log retains at most `maxBytes`. */
	shrink(maxBytes: number): void {
		this.#dropOver(this.#limits.logEvents, maxBytes);
		this.sweep();
	}

	/** Releases the entries of cursors that have lost their position, even if their consumers are idle. */
	sweep(): void {
		this.#droppedEvents = 0;
		this.#droppedBytes = 0;
		for (const cursor of this.#cursors) {
			if (cursor.position.cut) {
				cursor.lose(fellBehind());
			}
		}
	}

	/** Whether entries were dropped since the last sweep, so that a cursor may retain one of them. */
	get needsSweep(): boolean {
		return this.#droppedEvents > 0;
	}

	#dropOver(maxEvents: number, maxBytes: number): void {
		while (this.#events > maxEvents || this.bytes > maxBytes) {
			const dropped = this.#base.next;
			if (dropped === undefined) {
				return;
			}
			this.#base.next = undefined;
			this.#base.cut = true;
			this.#base = dropped;
			dropped.leave();
			this.#floor = dropped.revision;
			this.#events -= 1;
			this.#bytes -= dropped.bytes;
			this.#droppedEvents += 1;
			this.#droppedBytes += dropped.bytes;
			this.#account.changed(-dropped.bytes);
			this.#account.dropped(dropped);
			if (this.#signposts[0] === dropped) {
				this.#signposts.shift();
			}
		}
	}

	/** Registers the cursor of a watch. */
	addCursor(cursor: Cursor): void {
		this.#cursors.add(cursor);
		this.#interests.add(cursor);
	}

	/** Unregisters the cursor of a watch that has ended. */
	removeCursor(cursor: Cursor): void {
		if (this.#cursors.delete(cursor)) {
			this.#interests.delete(cursor);
		}
	}

	/** Ends all watches. */
	close(reason: WatchClosed): void {
		this.#closed = reason;
		for (const cursor of this.#cursors) {
			cursor.lose(reason);
		}
	}

	/**
	 * Checks that a cursor has lost no events.
	 *
	 * @throws WatchClosed
	 */
	assertContinuous(position: LogEntry): void {
		if (this.#closed !== undefined) {
			throw this.#closed;
		}
		if (position.cut) {
			throw fellBehind();
		}
	}
}

function fellBehind(): WatchClosed {
	return new WatchClosed(
		"the consumer of the watch fell too far behind; discard the state built from it and watch again",
	);
}
