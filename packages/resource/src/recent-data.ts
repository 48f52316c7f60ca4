import type { Message } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";

/** The data of one resource; `undefined` once it is dropped. */
interface Entry {
	data: Message | undefined;
	readonly bytes: number;
}

/**
 * Decoded data of the most recently read resources, up to a number of bytes. It keeps no resource alive.
 *
 * Invariants, checked by a property test against a model:
 * - an entry has data if and only if it is in `#recent`;
 * - `bytes` is the sum of all entries in `#recent`, and at most `maxBytes` unless there is only one.
 */
export class RecentData {
	readonly #maxBytes: number;
	readonly #entries = new WeakMap<Resource, Entry>();
	/** The least recently used first. */
	readonly #recent = new Set<Entry>();
	#bytes = 0;

	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	/** The size of all cached data, in bytes. */
	get bytes(): number {
		return this.#bytes;
	}

	/** The data of a resource, if it is cached. */
	get(resource: Resource): Message | undefined {
		const entry = this.#entries.get(resource);
		if (entry?.data === undefined) {
			return undefined;
		}
		this.#recent.delete(entry);
		this.#recent.add(entry);
		return entry.data;
	}

	/** Sets the data of a resource, and drops other data to make room. */
	set(resource: Resource, data: Message, bytes: number): void {
		const replaced = this.#entries.get(resource);
		if (replaced !== undefined) {
			this.#drop(replaced);
		}
		const entry = { data, bytes };
		this.#entries.set(resource, entry);
		this.#recent.add(entry);
		this.#bytes += bytes;
		for (const oldest of this.#recent) {
			if (this.#bytes <= this.#maxBytes || oldest === entry) {
				return;
			}
			this.#drop(oldest);
		}
	}

	#drop(entry: Entry): void {
		if (this.#recent.delete(entry)) {
			this.#bytes -= entry.bytes;
			entry.data = undefined;
		}
	}
}
