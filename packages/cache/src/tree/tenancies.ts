import type { NameMap } from "./name-map.ts";

/** A namespace: its entries in the first partition that had it, and in others. */
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
 * It duplicates the two upper levels of the tree by ID to speed up the most frequent operation: with a
 * million resources, the cost of a lookup is that of its cache misses, which nodes and their maps of
 * children would double. A unit that the scope of the type lacks is empty.
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

	/** The number of tenancies. */
	get size(): number {
		let size = 0;
		for (const { others } of this.#byNamespace.values()) {
			size += 1 + (others?.size ?? 0);
		}
		return size;
	}
}
