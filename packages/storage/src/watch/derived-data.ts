/**
 * Data that consumers derive from an event once for all watches, such as its encodings. They attach it to `key`, and
 * count its bytes with `retain`. The log drops the data with the event, or earlier if there is too much of it, by giving
 * the event another key.
 */
export interface DerivedData {
	readonly key: object;
	/** Counts bytes that are kept under the current key. May drop them, and data derived from other events. */
	retain(bytes: number): void;
}

/** The derived data of one event of a log. */
export class EventData implements DerivedData {
	#key: object | undefined;
	#bytes = 0;
	#log: LogData | undefined;
	#isQueued = false;
	#next: EventData | undefined;

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

	/** For `LogData`: appends it to the queue, after `last`, unless it is in the queue. Returns the new last element. */
	queueAfter(last: EventData | undefined): EventData | undefined {
		if (this.#isQueued) {
			return last;
		}
		this.#isQueued = true;
		if (last !== undefined) {
			last.#next = this;
		}
		return this;
	}

	/** For `LogData`: removes it from the front of the queue. Returns the next element. */
	unqueue(): EventData | undefined {
		const next = this.#next;
		this.#isQueued = false;
		this.#next = undefined;
		return next;
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

/**
 * The derived data of all events of a log. Within its limits, data that was counted last is kept.
 *
 * It is a queue, linked from the oldest to the newest. Elements that are dropped inside it stay until they are the
 * oldest. The data of an event that the log has dropped is not queued again, so the queue is never longer than two logs.
 */
export class LogData {
	readonly #maxBytes: number;
	readonly #account: DataAccount;
	#oldest: EventData | undefined;
	#newest: EventData | undefined;
	#bytes = 0;

	constructor(maxBytes: number, account: DataAccount) {
		this.#maxBytes = maxBytes;
		this.#account = account;
	}

	get bytes(): number {
		return this.#bytes;
	}

	/** For `EventData`: more of its bytes are kept. */
	added(data: EventData, bytes: number): void {
		this.#newest = data.queueAfter(this.#newest);
		this.#oldest ??= data;
		this.#bytes += bytes;
		this.#account.changed(bytes);
		while (this.#oldest !== undefined && (this.#bytes > this.#maxBytes || !this.#account.hasRoom)) {
			this.#drop(this.#oldest);
			this.#unqueueOldest();
		}
	}

	/** Drops the data of an event. */
	remove(data: EventData): void {
		this.#drop(data);
		while (this.#oldest?.bytes === 0) {
			this.#unqueueOldest();
		}
	}

	#drop(data: EventData): void {
		if (data.bytes > 0) {
			this.#bytes -= data.bytes;
			this.#account.changed(-data.bytes);
		}
		data.drop();
	}

	#unqueueOldest(): void {
		this.#oldest = this.#oldest?.unqueue();
		if (this.#oldest === undefined) {
			this.#newest = undefined;
		}
	}
}
