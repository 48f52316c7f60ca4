/**
 * What consumers derive from an event once for all watches, such as its encodings. They keep it in a `WeakMap`, under
 * `key`, and count its bytes with `retain`. The log drops it with the event, or earlier if it has too much of it: then
 * the event has another key.
 */
export interface DerivedData {
	readonly key: object;
	/** Counts bytes that are kept under the current key. May drop them, and what was derived from other events. */
	retain(bytes: number): void;
}

/** The derived data of one event of a log. */
export class EventData implements DerivedData {
	#key: object | undefined;
	#bytes = 0;
	#log: LogData | undefined;

	constructor(log: LogData | undefined) {
		this.#log = log;
	}

	get key(): object {
		this.#key ??= {};
		return this.#key;
	}

	get bytes(): number {
		return this.#bytes;
	}

	retain(bytes: number): void {
		if (this.#log !== undefined) {
			this.#bytes += bytes;
			this.#log.added(this, bytes);
		}
	}

	/** For `LogData`: forgets the key and the bytes. */
	drop(): void {
		this.#key = undefined;
		this.#bytes = 0;
	}

	/** The log has dropped the event. */
	leave(): void {
		this.#log?.remove(this);
		this.#log = undefined;
	}
}

/** Accounts for the memory that a log retains. */
export interface DataAccount {
	/** The retained bytes have changed by this amount. */
	changed(bytes: number): void;
	/** Whether everything that is retained is within the budget. */
	readonly hasRoom: boolean;
}

/** The derived data of all events of a log. Within its limits, data that was counted last is kept. */
export class LogData {
	readonly #maxBytes: number;
	readonly #account: DataAccount;
	/** Data with bytes, the oldest first. */
	readonly #kept = new Set<EventData>();
	#bytes = 0;

	constructor(maxBytes: number, account: DataAccount) {
		this.#maxBytes = maxBytes;
		this.#account = account;
	}

	get bytes(): number {
		return this.#bytes;
	}

	/** For `EventData`: more bytes of it are kept. */
	added(data: EventData, bytes: number): void {
		this.#kept.add(data);
		this.#bytes += bytes;
		this.#account.changed(bytes);
		for (const oldest of this.#kept) {
			if (this.#bytes <= this.#maxBytes && this.#account.hasRoom) {
				return;
			}
			this.remove(oldest);
		}
	}

	/** Drops the data of an event. */
	remove(data: EventData): void {
		if (this.#kept.delete(data)) {
			this.#bytes -= data.bytes;
			this.#account.changed(-data.bytes);
		}
		data.drop();
	}
}
