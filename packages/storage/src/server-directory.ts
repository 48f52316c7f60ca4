/** A server of a cluster, as it records itself. */
export interface ServerRecord {
	/** A UUID, new at each start. */
	readonly id: string;
	/** Its name, for people. Two servers may have the same one. */
	readonly name: string;
	/** The URL at which the other servers reach it, such as `http://10.0.0.1:7575`. */
	readonly address: string;
	/** When it was started, in milliseconds since the epoch. */
	readonly startedAtMs: number;
	/** The version of Plinth. */
	readonly version: string;
	/** Random text by which it proves to other servers of the cluster that it wrote this record. */
	readonly secret: string;
}

/**
 * The live servers that share a storage, beside its resources: no watch of resources receives them, and no backup of Plinth
 * has them.
 */
export interface ServerDirectory {
	/** Records this server, once, until `leave`. Tries again by itself while the storage is unreachable. */
	join(own: ServerRecord): void;

	/**
	 * The live servers, in no order. A server that was killed is among them for up to 10 s.
	 *
	 * @throws StorageUnavailable; the signal's reason.
	 */
	list(signal: AbortSignal): Promise<readonly ServerRecord[]>;

	/** Removes the record of this server. Never rejects: a record that can't be removed expires. */
	leave(): Promise<void>;
}

/** The directory of a storage that one server uses. */
export class LocalServerDirectory implements ServerDirectory {
	#own: ServerRecord | undefined;

	join(own: ServerRecord): void {
		this.#own = own;
	}

	async list(signal: AbortSignal): Promise<readonly ServerRecord[]> {
		signal.throwIfAborted();
		return this.#own === undefined ? [] : [this.#own];
	}

	async leave(): Promise<void> {
		this.#own = undefined;
	}
}
