import { create } from "@bufbuild/protobuf";
import { type ID, IDSchema } from "@plinth/proto";
import { type EventRecord, nameKey, tenancyOf, typeOf } from "@plinth/resource";
import { LinkedList, type ListEntry } from "@plinth/runtime";
import { identityOf, type RecordedEvent } from "./recorded-event.ts";

/** How many events a server keeps. */
export interface EventLimits {
	/** Of all resources together. */
	readonly events: number;
	/** Of one resource. */
	readonly perResource: number;
	/** The characters of a message. */
	readonly messageLength: number;
	/** For how long, after they have occurred last. */
	readonly retentionMs: number;
}

/** 10,000 events, 32 for each resource, for an hour. */
export const defaultEventLimits: EventLimits = {
	events: 10_000,
	perResource: 32,
	messageLength: 1_000,
	retentionMs: 3_600_000,
};

/** The events of one resource that are to be stored; none if its row is to be removed. */
export interface ChangedRow {
	/** See `nameKey`. */
	readonly key: string;
	readonly events: readonly RecordedEvent[];
}

/**
 * The events that one server has recorded, and which of them are to be stored.
 *
 * ```
 *   #resources   Map
 *     <nameKey> → events: Map, the event that has occurred longest ago first
 *                   <uid, source, severity, reason> → event
 *   #order       list of the same, the resource whose events have changed longest ago first: a Map that loses its first
 *                entry with each new one takes ever longer to find the next
 *   #changed     the resources whose row is to be stored
 *   #behind      the resources whose row lacks only that events have occurred again, less than a minute after it was
 *                stored: an event that occurs all the time is stored once a minute, and when its count doubles
 *   #stored      the resources that have a row, as far as is known
 * ```
 *
 * Invariants, after each call:
 * - there are at most `limits.events` events, and at most `limits.perResource` of each resource;
 * - a resource that is neither in `#resources` nor in `#stored` is not in `#changed` or `#behind`: what was recorded and
 *   dropped before it was stored leaves nothing behind.
 */
export class OwnEvents {
	readonly #limits: EventLimits;
	readonly #server: string;
	readonly #newId: () => string;
	readonly #resources = new Map<string, ResourceEvents>();
	readonly #order = new LinkedList<ResourceEvents>();
	readonly #changed = new Set<string>();
	readonly #behind = new Set<string>();
	readonly #stored = new Set<string>();
	#size = 0;

	/** @param newId - returns a new ID for an event. */
	constructor(limits: EventLimits, server: string, newId: () => string) {
		this.#limits = limits;
		this.#server = server;
		this.#newId = newId;
	}

	/** How many events there are. */
	get size(): number {
		return this.#size;
	}

	/** Whether some rows are to be written or removed. */
	get hasChanges(): boolean {
		return this.#changed.size > 0;
	}

	/** How many rows are to be written or removed. */
	get changes(): number {
		return this.#changed.size;
	}

	/** Adds an event, or counts it if it has occurred before. `undefined` if its resource has no sensible name. */
	record(record: EventRecord, nowMs: number): RecordedEvent | undefined {
		const { resource, reason, source, severity = "normal" } = record;
		const key = nameKey(resource);
		if (!isStorable(key, resource)) {
			return undefined;
		}
		const entry = this.#touch(key);
		const { events } = entry;
		const eventKey = identityOf(record);
		const message = cut(String(record.message), this.#limits.messageLength);
		let event = events.get(eventKey);
		if (event === undefined) {
			event = {
				...{ id: this.#newId(), resource: copyOf(resource), severity, reason, message, source },
				...{ server: this.#server, count: 1, firstMs: nowMs, lastMs: nowMs },
			};
			this.#size += 1;
		} else {
			event.count += 1;
			event.message = message;
			event.lastMs = nowMs;
			events.delete(eventKey);
		}
		events.set(eventKey, event);
		if (isPowerOfTwo(event.count) || nowMs - entry.takenMs >= recountMs) {
			this.#changed.add(key);
		} else {
			this.#behind.add(key);
		}
		this.#shrink(entry);
		return event;
	}

	/** Rows that are only behind in their counts are to be stored too. */
	storeCounts(): void {
		for (const key of this.#behind) {
			this.#changed.add(key);
		}
		this.#behind.clear();
	}

	/**
	 * Takes over the events of stored rows, which an earlier process has recorded. Those of this process count on, and are
	 * newer than what was stored.
	 */
	adoptAll(
		rows: readonly { readonly key: string; readonly events: readonly RecordedEvent[] }[],
		nowMs: number,
	): void {
		const recorded = [...this.#order];
		const newest = (events: readonly RecordedEvent[]) =>
			events.reduce((latest, { lastMs }) => Math.max(latest, lastMs), 0);
		for (const { key, events } of rows.toSorted((a, b) => newest(a.events) - newest(b.events))) {
			this.#adopt(key, events, nowMs);
		}
		for (const entry of recorded) {
			this.#touch(entry.key);
		}
		for (const entry of this.#order) {
			this.#shrink(entry);
		}
	}

	#adopt(key: string, stored: readonly RecordedEvent[], nowMs: number): void {
		this.#stored.add(key);
		const recorded = this.#resources.get(key)?.events;
		const events = new Map<string, RecordedEvent>();
		for (const event of stored.toSorted((a, b) => a.lastMs - b.lastMs)) {
			if (isCurrent(event, nowMs, this.#limits.retentionMs)) {
				events.set(identityOf(event), event);
			}
		}
		for (const [eventKey, event] of recorded ?? []) {
			const earlier = events.get(eventKey);
			events.delete(eventKey);
			events.set(eventKey, earlier ? { ...event, ...continued(earlier, event) } : event);
		}
		if (events.size > 0) {
			this.#size += events.size - (recorded?.size ?? 0);
			this.#touch(key).events = events;
		}
		if (events.size !== stored.length || recorded !== undefined) {
			this.#changed.add(key);
		}
	}

	/** These rows are all that are stored: others were lost, by a restore for example, and are to be stored again. */
	storeMissing(keys: ReadonlySet<string>): void {
		for (const key of this.#stored) {
			if (!keys.has(key)) {
				this.#stored.delete(key);
			}
		}
		for (const { key } of this.#order) {
			if (!keys.has(key)) {
				this.#changed.add(key);
			}
		}
	}

	/** Drops the events that have not occurred for the time of retention. */
	expire(nowMs: number): void {
		for (const entry of this.#order) {
			for (const [eventKey, event] of entry.events) {
				if (!isCurrent(event, nowMs, this.#limits.retentionMs)) {
					this.#remove(entry, eventKey);
				}
			}
		}
	}

	/** The events of a resource. @param key - see `nameKey`. */
	of(key: string): Iterable<RecordedEvent> {
		return this.#resources.get(key)?.events.values() ?? [];
	}

	/** All events. */
	*all(): Generator<RecordedEvent, void, undefined> {
		for (const { events } of this.#order) {
			yield* events.values();
		}
	}

	/**
	 * The rows to store next, up to `limit`: those that have waited longest. They count as stored; call `failed` with those
	 * that were not.
	 */
	takeChanged(limit: number, nowMs: number): readonly ChangedRow[] {
		const rows: ChangedRow[] = [];
		for (const key of this.#changed) {
			if (rows.length === limit) {
				break;
			}
			this.#changed.delete(key);
			this.#behind.delete(key);
			const entry = this.#resources.get(key);
			const events = [...(entry?.events.values() ?? [])];
			if (entry !== undefined) {
				entry.takenMs = nowMs;
			}
			if (events.length > 0) {
				this.#stored.add(key);
			} else {
				this.#stored.delete(key);
			}
			rows.push({ key, events });
		}
		return rows;
	}

	/** Rows that were taken may not have been stored: they are taken again. */
	failed(rows: readonly ChangedRow[]): void {
		for (const { key } of rows) {
			this.#stored.add(key);
			this.#changed.add(key);
		}
	}

	/** The events of a resource, which is now the one whose events have changed last. */
	#touch(key: string): ResourceEvents {
		const entry = this.#resources.get(key) ?? {
			...{ key, events: new Map(), place: undefined },
			takenMs: Number.NEGATIVE_INFINITY,
		};
		if (entry.place === undefined) {
			this.#resources.set(key, entry);
		}
		entry.place?.remove();
		entry.place = this.#order.append(entry);
		return entry;
	}

	#shrink(changed: ResourceEvents): void {
		while (changed.events.size > this.#limits.perResource) {
			this.#removeFirst(changed);
		}
		while (this.#size > this.#limits.events && this.#order.first !== undefined) {
			this.#removeFirst(this.#order.first);
		}
	}

	#removeFirst(entry: ResourceEvents): void {
		for (const eventKey of entry.events.keys()) {
			this.#remove(entry, eventKey);
			return;
		}
	}

	#remove({ key, events, place }: ResourceEvents, eventKey: string): void {
		events.delete(eventKey);
		this.#size -= 1;
		this.#changed.add(key);
		if (events.size === 0) {
			place?.remove();
			this.#resources.delete(key);
			this.#behind.delete(key);
			if (!this.#stored.has(key)) {
				this.#changed.delete(key);
			}
		}
	}
}

/** The events of one resource. */
interface ResourceEvents {
	readonly key: string;
	events: Map<string, RecordedEvent>;
	/** When its row was stored last, in milliseconds since 1970. */
	takenMs: number;
	/** In the order of resources. */
	place: ListEntry<ResourceEvents> | undefined;
}

/** What an event keeps of its occurrences before a restart. */
function continued(
	earlier: RecordedEvent,
	{ count }: RecordedEvent,
): Pick<RecordedEvent, "id" | "count" | "firstMs"> {
	return { id: earlier.id, count: earlier.count + count, firstMs: earlier.firstMs };
}

/** How soon an event that has only occurred again is stored, in milliseconds. */
const recountMs = 60_000;

function isPowerOfTwo(count: number): boolean {
	return Number.isInteger(Math.log2(count));
}

/** How far ahead the clock of a server may be, in milliseconds: events of the far future never occurred. */
const aheadMs = 300_000;

/** Whether an event has occurred within the time of retention. */
export function isCurrent({ lastMs }: RecordedEvent, nowMs: number, retentionMs: number): boolean {
	return lastMs > nowMs - retentionMs && lastMs <= nowMs + aheadMs;
}

/** The most bytes of the key of a resource, and of a uid. Those of resources that can exist are shorter. */
const [keyBytes, uidBytes] = [1_000, 128];

/** Whether events of the resource can be stored: a controller may have made its name up. */
function isStorable(key: string, { uid }: ID): boolean {
	return (
		Buffer.byteLength(key) <= keyBytes && uid.length <= uidBytes && `${key}${uid}`.isWellFormed()
	);
}

/** A message of its own: controllers may change theirs, and may have written it as a literal. */
function copyOf({ uid, name, type, tenancy }: ID): ID {
	return create(IDSchema, {
		...{ uid, name },
		...(type && { type: typeOf(type) }),
		...(tenancy && { tenancy: tenancyOf(tenancy) }),
	});
}

/** A message that is well-formed and not too long. */
function cut(message: string, length: number): string {
	const text = message.length > length ? `${message.slice(0, length - 1)}…` : message;
	return text.isWellFormed() ? text : text.toWellFormed();
}
