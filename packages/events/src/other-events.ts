import type { DecodedRow } from "./event-rows.ts";
import type { RecordedEvent } from "./recorded-event.ts";

/** The events of one resource, by the process that has recorded them. */
type ByOwner = Map<string, readonly RecordedEvent[]>;

/** The events that other servers have stored. */
export class OtherEvents {
	readonly #resources = new Map<string, ByOwner>();
	readonly #onChange: (event: RecordedEvent) => void;

	/** @param onChange - called with each event that is new or has occurred again. */
	constructor(onChange: (event: RecordedEvent) => void) {
		this.#onChange = onChange;
	}

	/** How many events there are. */
	get size(): number {
		let size = 0;
		for (const owners of this.#resources.values()) {
			for (const events of owners.values()) {
				size += events.length;
			}
		}
		return size;
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
			for (const event of events) {
				if (!isKnown(event, before)) {
					this.#onChange(event);
				}
			}
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

	/** Drops the events that have occurred last at that time or before. */
	expire(beforeMs: number): void {
		for (const [key, owners] of this.#resources) {
			for (const [owner, events] of owners) {
				const kept = events.filter(({ lastMs }) => lastMs > beforeMs);
				if (kept.length === 0) {
					this.#remove(key, owners, owner);
				} else if (kept.length < events.length) {
					owners.set(owner, kept);
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

	#remove(key: string, owners: ByOwner, owner: string): void {
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
