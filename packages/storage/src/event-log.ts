import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import { VersionCompacted, WatchClosed } from "./errors.ts";
import type { StorageLimits } from "./limits.ts";
import { resourceSize } from "./resource-size.ts";
import type { WatchEvent } from "./watch-event.ts";

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
	#last: WatchEvent | undefined;
	#inner: WatchEvent | undefined;

	constructor(
		revision: number,
		kind: "upsert" | "delete",
		resource: Resource,
		previous: Resource | undefined,
	) {
		this.revision = revision;
		this.kind = kind;
		this.resource = resource;
		this.previous = previous;
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

	/** The bytes that live on because of this entry: what it replaced; its own are in the state. */
	get bytes(): number {
		const kept = this.kind === "delete" ? this.resource : this.previous;
		return entryBytes + (kept === undefined ? 0 : resourceSize(kept));
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
 * there. It is in no list, costs nothing while nobody moves it, and holds up nobody. When the chain
 * is over its bounds, the oldest entry becomes the base, and the former base is cut off: its link
 * is taken away, so that a cursor that stands there (or before) keeps one entry alive and not the
 * chain, and learns from `cut` that it has missed something.
 *
 * `floor` is the newest revision of which an entry is no longer kept: whoever has seen all up to it
 * can go on from the kept part without a gap. Signposts at every 256th entry find the place of a
 * revision without walking the chain.
 */
export class EventLog {
	readonly #limits: Pick<StorageLimits, "logEvents" | "logBytes">;
	#base: LogEntry;
	#tail: LogEntry;
	#floor: number;
	#events = 0;
	#bytes = 0;
	#untilSignpost = signpostEvery;
	#signposts: LogEntry[] = [];
	/** Watches that have consumed everything. */
	readonly #waiting = new Set<() => void>();
	#closed: WatchClosed | undefined;

	/** @param revision The revision up to which the state is known and no events are. */
	constructor(revision: number, limits: Pick<StorageLimits, "logEvents" | "logBytes">) {
		this.#limits = limits;
		this.#floor = revision;
		// Stands for all that happened before: no cursor ever reads it, they start behind it.
		this.#base = new LogEntry(revision, "delete", before, undefined);
		this.#tail = this.#base;
	}

	/** The number of events kept. */
	get events(): number {
		return this.#events;
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
		this.#untilSignpost -= 1;
		if (this.#untilSignpost === 0) {
			this.#untilSignpost = signpostEvery;
			this.#signposts.push(entry);
		}
	}

	/** Drops what is over the bounds. To be called when a revision was added. */
	trim(): void {
		while (this.#events > this.#limits.logEvents || this.#bytes > this.#limits.logBytes) {
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
			if (this.#signposts[0] === dropped) {
				this.#signposts.shift();
			}
		}
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
			throw new WatchClosed(
				"the consumer of the watch fell too far behind; discard what it told and watch again",
			);
		}
	}
}
