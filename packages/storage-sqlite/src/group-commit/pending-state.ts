import type { ID, Resource } from "@plinth/proto";
import { nameKey, type ResourceName } from "@plinth/resource";
import type { StateChange, StateStore, StateView } from "@plinth/storage";
import type { RowWrite } from "../file/row-table.ts";

/** The state after applying the commits of a group that are decided so far. */
export class PendingState implements StateView {
	readonly #store: StateStore;
	readonly #changed = new Map<string, { readonly stored: Resource | undefined }>();
	readonly #rows = new Map<string, RowWrite>();
	#revision: number;
	#stateBytes: number;
	#bytes = 0;

	constructor(store: StateStore) {
		this.#store = store;
		this.#revision = store.revision;
		this.#stateBytes = store.bytes;
	}

	/** The newest revision that was assigned. */
	get revision(): number {
		return this.#revision;
	}

	/** The bytes of the state. */
	get stateBytes(): number {
		return this.#stateBytes;
	}

	/** The bytes of all rows, including those that later commits of the group replace. */
	get bytes(): number {
		return this.#bytes;
	}

	lookup(id: ResourceName): Resource | undefined {
		const changed = this.#changed.get(nameKey(id));
		return changed === undefined ? this.#store.lookup(id) : changed.stored;
	}

	/**
	 * Adds the changes of a commit.
	 *
	 * @param bodies The serialized messages of its puts, in their order.
	 */
	add(
		revision: number,
		changes: readonly StateChange[],
		bodies: readonly Uint8Array[],
		growth: number,
	): void {
		this.#revision = revision;
		this.#stateBytes += growth;
		let puts = 0;
		for (const { op, resource } of changes) {
			const key = nameKey(idOf(resource));
			const body = op === "put" ? bodies[puts++] : undefined;
			this.#changed.set(key, { stored: op === "put" ? resource : undefined });
			this.#rows.set(key, { key, revision, body });
			this.#bytes += body?.byteLength ?? 0;
		}
	}

	/** The row writes of the group: for each row, the last change. */
	rows(): readonly RowWrite[] {
		return [...this.#rows.values()];
	}
}

function idOf(resource: Resource): ID {
	if (resource.id === undefined) {
		throw new TypeError("a stored resource needs an id");
	}
	return resource.id;
}
