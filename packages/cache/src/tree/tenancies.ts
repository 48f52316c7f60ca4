import type { NameMap } from "./name-map.ts";

/**
 * The entries of each tenancy, as nested maps and nothing else.
 *
 * It repeats the two upper levels of the tree by ID, for what is asked most: with a million
 * resources a look-up costs what the memory costs that it touches, and nodes with their maps of
 * children would double that. A unit that the scope of the type lacks is empty.
 */
export class Tenancies {
	readonly #byPartition = new Map<string, Map<string, NameMap>>();

	get(partition: string, namespace: string): NameMap | undefined {
		return this.#byPartition.get(partition)?.get(namespace);
	}

	set(partition: string, namespace: string, names: NameMap): void {
		const byNamespace = this.#byPartition.get(partition);
		if (byNamespace === undefined) {
			this.#byPartition.set(partition, new Map([[namespace, names]]));
		} else {
			byNamespace.set(namespace, names);
		}
	}

	delete(partition: string, namespace: string): void {
		const byNamespace = this.#byPartition.get(partition);
		byNamespace?.delete(namespace);
		if (byNamespace?.size === 0) {
			this.#byPartition.delete(partition);
		}
	}

	/** How many tenancies there are. */
	get size(): number {
		let size = 0;
		for (const byNamespace of this.#byPartition.values()) {
			size += byNamespace.size;
		}
		return size;
	}
}
