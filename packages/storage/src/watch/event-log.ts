import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import type { StorageLimits } from "../limits.ts";
import { memorySize } from "../state-store/resource-size.ts";
import type { WatchEvent } from "../watch-event.ts";

/**
 * An event of one type family, stored once for all watches. Immutable but for its place in the
 * chain.
 */
export class LogEntry {
	readonly revision: number;
	readonly kind: "upsert" | "delete";
	readonly resource: Resource;
	readonly previous: Resource | undefined;
	/** The event after this one, once there is one; taken away again when the entry is cut off. */
	next: LogEntry | undefined = undefined;
	/** Whether entries after this one were dropped: a cursor that stands here has lost some. */
	cut = false;
	/** The bytes that live on because of this entry: what it replaced; its own are in the state. */
	readonly bytes: number;
	#last: WatchEvent | undefined;
	#inner: WatchEvent | undefined;

	constructor(
		revision: number,
		kind: "upsert" | "delete",
		resource: Resource,
		previous: Resource | undefined,
		/** The size of what the entry replaces or deletes, where it is known already. */
		replacedBytes?: number,
	) {
		this.revision = revision;
		this.kind = kind;
		this.resource = resource;
		this.previous = previous;
		this.bytes = entryBytes + (replacedBytes ?? memorySize(this.replaced));
	}

	/** What the entry replaces or deletes. */
	get replaced(): Resource | undefined {
		return this.kind === "delete" ? this.resource : this.previous;
	}

	/** The event for a watch that gets no more of this revision. One object for all of them. */
	get last(): WatchEvent {
		this.#last ??= this.#event(String(this.revision));
		return this.#last;
	}

	/** The event for a watch that gets more of this revision. One object for all of them. */
	get inner(): WatchEvent {
		this.#inner ??= this.#event(undefined);
		return this.#inner;
	}

	#event(version: string | undefined): WatchEvent {
		const { kind, resource, previous } = this;
		const place = version === undefined ? {} : { version };
		return freezeInDevelopment(
			kind === "upsert" && previous !== undefined
				? { kind, resource, previous, ...place }
				: { kind, resource, ...place },
		);
	}
}

/** What the base of a new log is about: nothing. */
const before = freezeInDevelopment(create(ResourceSchema));

/** An entry with its two events, roughly. */
const entryBytes = 200;

/** Entries between two signposts. */
const signpostEvery = 256;

/** At least so many entries are dropped between two looks at all cursors, unless they are large. */
const leastEntriesPerSweep = 256;
/** Of the bytes that a log may hold, the share that is dropped between two looks at all cursors. */
const sweepShare = 1 / 8;

/** A place in a log that a watch has reached. */
export interface Cursor {
	/** The last entry that was consumed, or skipped. */
	readonly position: LogEntry;
	/** The cursor must drop all references to entries and snapshots, and report this from now on. */
	lose(reason: WatchClosed): void;
}

/** Who counts what a log keeps alive. */
export interface LogAccount {
	/** The bytes that the log keeps alive have changed by so much. */
	changed(bytes: number): void;
	/** The log keeps the entry, and what it replaced, no longer. */
	dropped(entry: LogEntry): void;
}

const uncounted: LogAccount = { changed() {}, dropped() {} };

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
 * A cursor is a reference to the entry that it has consumed last; what it gets next hangs from
 * there. It costs nothing while nobody moves it, and holds up nobody. When the chain is over its
 * bounds, the oldest entry becomes the base, and the former base is cut off: its link is taken away,
 * so that a cursor that stands there (or before) keeps one entry alive and not the chain, and learns
 * from `cut` that it has missed something.
 *
 * That one entry may be large, and there may be many such cursors whose consumers never ask again. So
 * the log also knows its open cursors, and after dropping a bounded part of the chain takes the
 * entries away from those that have lost their place. It looks at each cursor once per that part, not
 * once per event: the part grows with the number of cursors.
 *
 * `floor` is the newest revision of which an entry is no longer kept: whoever has seen all up to it
 * can go on from the kept part without a gap. Signposts at every 256th entry find the place of a
 * revision without walking the chain.
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
	/** Watches that have consumed everything. */
	readonly #waiting = new Set<() => void>();
	/** The cursors of all watches that have begun and not ended. */
	readonly #cursors = new Set<Cursor>();
	#droppedEvents = 0;
	#droppedBytes = 0;
	#closed: WatchClosed | undefined;

	/** @param revision The revision up to which the state is known and no events are. */
	constructor(
		revision: number,
		limits: Pick<StorageLimits, "logEvents" | "logBytes">,
		account: LogAccount = uncounted,
	) {
		this.#limits = limits;
		this.#account = account;
		this.#floor = revision;
		// Stands for all that happened before: no cursor ever reads it, they start behind it.
		this.#base = new LogEntry(revision, "delete", before, undefined);
		this.#tail = this.#base;
	}

	/** The number of events kept. */
	get events(): number {
		return this.#events;
	}

	/** The bytes that live on only because of the log. */
	get bytes(): number {
		return this.#bytes;
	}

	/** The entry that a cursor at the end of the log stands on. */
	get tail(): LogEntry {
		return this.#tail;
	}

	/**
	 * The entry that a cursor stands on which has seen everything up to a revision.
	 *
	 * @throws VersionCompacted where events after that revision are no longer kept.
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

	/** Adds an event. Wakes nobody: a revision is added whole before anyone looks. */
	append(entry: LogEntry): void {
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
	}

	/** Drops what is over the bounds. To be called when a revision was added. */
	trim(): void {
		this.#dropOver(this.#limits.logEvents, this.#limits.logBytes);
		if (
			this.#droppedEvents > Math.max(leastEntriesPerSweep, this.#cursors.size) ||
			this.#droppedBytes > this.#limits.logBytes * sweepShare
		) {
			this.sweep();
		}
	}

	/** Drops the oldest entries until the log keeps no more bytes alive than that. */
	shrink(maxBytes: number): void {
		this.#dropOver(this.#limits.logEvents, maxBytes);
		this.sweep();
	}

	/** Takes their entries away from cursors that have lost their place, whether or not they move. */
	sweep(): void {
		this.#droppedEvents = 0;
		this.#droppedBytes = 0;
		for (const cursor of this.#cursors) {
			if (cursor.position.cut) {
				cursor.lose(fellBehind());
			}
		}
	}

	/** Whether entries were dropped since the last sweep, so that a cursor may keep one of them alive. */
	get needsSweep(): boolean {
		return this.#droppedEvents > 0;
	}

	#dropOver(maxEvents: number, maxBytes: number): void {
		while (this.#events > maxEvents || this.#bytes > maxBytes) {
			const dropped = this.#base.next;
			if (dropped === undefined) {
				return;
			}
			this.#base.next = undefined;
			this.#base.cut = true;
			this.#base = dropped;
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

	/** Enters the cursor of a watch that begins. It stays until it is removed. */
	addCursor(cursor: Cursor): void {
		this.#cursors.add(cursor);
	}

	/** The watch of that cursor has ended. */
	removeCursor(cursor: Cursor): void {
		this.#cursors.delete(cursor);
	}

	/** The watch of that wake-up call waits for events, until it says otherwise. */
	addWaiting(wake: () => void): void {
		this.#waiting.add(wake);
	}

	/** The watch of that wake-up call has got something, or has ended. */
	removeWaiting(wake: () => void): void {
		this.#waiting.delete(wake);
	}

	/** Calls all watches that wait. */
	wake(): void {
		for (const wake of this.#waiting) {
			wake();
		}
	}

	/** Ends all watches. */
	close(reason: WatchClosed): void {
		this.#closed = reason;
		this.wake();
		for (const cursor of this.#cursors) {
			cursor.lose(reason);
		}
	}

	/**
	 * Checks that a cursor has lost nothing.
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
		"the consumer of the watch fell too far behind; discard what it told and watch again",
	);
}
