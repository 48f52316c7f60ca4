import type { NameMap } from "./name-map.ts";

/** A namespace: what it holds in the partition that had it first, and in others. */
interface Namespace {
	partition: string;
	names: NameMap;
	others: Map<string, NameMap> | undefined;
}

/**
 * The entries of each tenancy, by namespace and then by partition.
 *
 *     namespace ──hash──▶ partition ═ names      most namespaces are of one partition: one comparison
 *                         others ──hash──▶ names
 *
 * It repeats the two upper levels of the tree by ID, for what is asked most: with a million
 * resources a look-up costs what the memory costs that it touches, and nodes with their maps of
 * children would double that. A unit that the scope of the type lacks is empty.
 */
export class Tenancies {
	readonly #byNamespace = new Map<string, Namespace>();

	get(partition: string, namespace: string): NameMap | undefined {
		const found = this.#byNamespace.get(namespace);
		return found === undefined || found.partition === partition
			? found?.names
			: found.others?.get(partition);
	}

	set(partition: string, namespace: string, names: NameMap): void {
		const found = this.#byNamespace.get(namespace);
		if (found === undefined) {
			this.#byNamespace.set(namespace, { partition, names, others: undefined });
		} else if (found.partition === partition) {
			found.names = names;
		} else {
			found.others ??= new Map();
			found.others.set(partition, names);
		}
	}

	delete(partition: string, namespace: string): void {
		const found = this.#byNamespace.get(namespace);
		if (found?.partition !== partition) {
			found?.others?.delete(partition);
			return;
		}
		const [next] = found.others ?? [];
		if (next === undefined) {
			this.#byNamespace.delete(namespace);
		} else {
			[found.partition, found.names] = next;
			found.others?.delete(found.partition);
		}
	}

	/** How many tenancies there are. */
	get size(): number {
		let size = 0;
		for (const { others } of this.#byNamespace.values()) {
			size += 1 + (others?.size ?? 0);
		}
		return size;
	}
}
