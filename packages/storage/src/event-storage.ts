/** A row of events. */
export interface EventRow {
	/** Up to 2,000 bytes of UTF-8. */
	readonly key: string;
	/** `undefined` if the row is removed. */
	readonly body: Uint8Array | undefined;
}

/** Options of a write. */
export interface EventWriteOptions {
	/** The storage removes the rows after this time, within a minute or so, unless they are written again. */
	readonly ttlMs: number;
}

/**
 * Rows of events, beside the resources of a storage: they have no versions, no watch of resources receives them, and no
 * backup of Plinth has them. They survive a restart. Rows that expire or are lost are no failure.
 */
export interface EventStorage {
	/**
	 * Replaces and removes rows, all of them or none. One write at a time; at most `maxEventRows` rows and
	 * `maxEventBytes` bytes of bodies.
	 *
	 * @throws StorageUnavailable: the rows may have been written, or may still be. Writing them again is safe.
	 */
	write(rows: readonly EventRow[], options: EventWriteOptions): Promise<void>;

	/**
	 * First all rows that are stored, together; then, where other servers share the storage, the rows that are written and
	 * removed, in order, own ones included.
	 *
	 * @throws StorageUnavailable: follow again; the signal's reason.
	 */
	follow(signal: AbortSignal): AsyncIterable<readonly EventRow[]>;
}

/** The most rows of one write. */
export const maxEventRows = 100;

/** The most bytes of bodies of one write. */
export const maxEventBytes = 512 * 1024;
