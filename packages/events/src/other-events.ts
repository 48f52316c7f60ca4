import type { DecodedRow } from "./event-rows.ts";
import { isCurrent } from "./own-events.ts";
import type { RecordedEvent } from "./recorded-event.ts";

/** The events of one resource, by the process that has recorded them. */
type ByOwner = Map<string, readonly RecordedEvent[]>;

/** How many events of others are kept. A process that starts again and again leaves many behind. */
const limit = 50_000;

/**
 * The events that other servers have stored. If there are too many, those of the process that has started first are
 * dropped: owners are ULIDs.
 */
export class OtherEvents {
	readonly #resources = new Map<string, ByOwner>();
	/** The number of events of each owner. */
	readonly #owners = new Map<string, number>();
	#size = 0;
	readonly #onChange: (event: RecordedEvent) => void;

	/** @param onChange - called with each event that is new or has occurred again. */
	constructor(onChange: (event: RecordedEvent) => void) {
		this.#onChange = onChange;
	}

	/** How many events there are. */
	get size(): number {
		return this.#size;
	}

	/** Takes over changed rows. */
	apply(rows: readonly DecodedRow[]): void {
		for (const { owner, key, events } of rows) {
			const owners = this.#resources.get(key) ?? new Map();
			const before = owners.get(owner) ?? [];
			if (events.length === 0) {
				this.#remove(key, owners, owner);
				continue;
			}
			owners.set(owner, events);
			this.#resources.set(key, owners);
			this.#count(owner, events.length - before.length);
			for (const event of events) {
				if (!isKnown(event, before)) {
					this.#onChange(event);
				}
			}
		}
		while (this.#size > limit && this.#owners.size > 1) {
			const [oldest = ""] = [...this.#owners.keys()].sort();
			this.#drop(oldest);
		}
	}

	/** Takes over all rows that there are. */
	replace(rows: readonly DecodedRow[]): void {
		const present = new Set(rows.map(({ owner, key }) => `${owner}/${key}`));
		for (const [key, owners] of this.#resources) {
			for (const owner of owners.keys()) {
				if (!present.has(`${owner}/${key}`)) {
					this.#remove(key, owners, owner);
				}
			}
		}
		this.apply(rows);
	}

	/** Drops the events that have not occurred within the time of retention. */
	expire(nowMs: number, retentionMs: number): void {
		for (const [key, owners] of this.#resources) {
			for (const [owner, events] of owners) {
				const kept = events.filter((event) => isCurrent(event, nowMs, retentionMs));
				if (kept.length === 0) {
					this.#remove(key, owners, owner);
				} else if (kept.length < events.length) {
					owners.set(owner, kept);
					this.#count(owner, kept.length - events.length);
				}
			}
		}
	}

	/** The events of a resource. @param key - see `nameKey`. */
	*of(key: string): Generator<RecordedEvent, void, undefined> {
		for (const events of this.#resources.get(key)?.values() ?? []) {
			yield* events;
		}
	}

	/** All events. */
	*all(): Generator<RecordedEvent, void, undefined> {
		for (const key of this.#resources.keys()) {
			yield* this.of(key);
		}
	}

	#drop(owner: string): void {
		for (const [key, owners] of this.#resources) {
			this.#remove(key, owners, owner);
		}
		this.#owners.delete(owner);
	}

	#count(owner: string, more: number): void {
		const events = (this.#owners.get(owner) ?? 0) + more;
		if (events === 0) {
			this.#owners.delete(owner);
		} else {
			this.#owners.set(owner, events);
		}
		this.#size += more;
	}

	#remove(key: string, owners: ByOwner, owner: string): void {
		this.#count(owner, -(owners.get(owner)?.length ?? 0));
		owners.delete(owner);
		if (owners.size === 0) {
			this.#resources.delete(key);
		}
	}
}

function isKnown(event: RecordedEvent, before: readonly RecordedEvent[]): boolean {
	return before.some(
		({ id, count, lastMs }) => id === event.id && count === event.count && lastMs === event.lastMs,
	);
}
