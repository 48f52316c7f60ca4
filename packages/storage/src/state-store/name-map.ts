import type { ResourceName } from "@plinth/resource";
import { storedPartition } from "./resource-key.ts";

type Named = Pick<ResourceName, "tenancy" | "name" | "region">;

/**
 * The values of one type family by name, for lookups that build no key: nested maps, whose hashes V8 caches in
 * the strings.
 *
 * ```
 *   namespace ──hash──▶ partition ═ names ──hash──▶ value     most namespaces are of one partition:
 *                       others ──hash──▶ names                one comparison
 * ```
 *
 * A unit that the scope of the type lacks is empty, so that a type in partitions has one namespace, `""`.
 * The partition of a copy of another region has that region in it (`storedPartition`).
 * Tenancies without values are removed. A tenancy with one value has no map, which would take 150 bytes more.
 */
export class NameMap<V> {
	readonly #namespaces = new Map<string, Namespace<V>>();

	/** The value of that tenancy and name, or `undefined`. */
	get(id: Named): V | undefined {
		const { tenancy, name } = id;
		const names = this.#names(storedPartition(id), tenancy?.namespace ?? "");
		if (names instanceof Map) {
			return names.get(name);
		}
		return names?.name === name ? names.value : undefined;
	}

	/** Sets the value of a name. */
	set(id: Named, value: V): void {
		const { tenancy, name } = id;
		const partition = storedPartition(id);
		const namespace = tenancy?.namespace ?? "";
		const names = this.#names(partition, namespace);
		if (names instanceof Map) {
			names.set(name, value);
		} else if (names === undefined || names.name === name) {
			this.#put(partition, namespace, { name, value });
		} else {
			const both = new Map([[names.name, names.value]]);
			both.set(name, value);
			this.#put(partition, namespace, both);
		}
	}

	/** Removes a name, and returns whether it had a value. */
	delete(id: Named): boolean {
		const { tenancy, name } = id;
		const partition = storedPartition(id);
		const namespace = tenancy?.namespace ?? "";
		const names = this.#names(partition, namespace);
		const isRemoved = names instanceof Map ? names.delete(name) : names?.name === name;
		if (isRemoved && (!(names instanceof Map) || names.size === 0)) {
			this.#remove(partition, namespace);
		}
		return isRemoved;
	}

	/** The number of tenancies that have values. */
	get tenancies(): number {
		let count = 0;
		for (const { others } of this.#namespaces.values()) {
			count += 1 + (others?.size ?? 0);
		}
		return count;
	}

	#names(partition: string, namespace: string): Names<V> | undefined {
		const found = this.#namespaces.get(namespace);
		return found === undefined || found.partition === partition
			? found?.names
			: found.others?.get(partition);
	}

	#put(partition: string, namespace: string, names: Names<V>): void {
		const found = this.#namespaces.get(namespace);
		if (found === undefined) {
			this.#namespaces.set(namespace, { partition, names, others: undefined });
		} else if (found.partition === partition) {
			found.names = names;
		} else {
			found.others ??= new Map();
			found.others.set(partition, names);
		}
	}

	#remove(partition: string, namespace: string): void {
		const found = this.#namespaces.get(namespace);
		if (found?.partition !== partition) {
			found?.others?.delete(partition);
			return;
		}
		const [next] = found.others ?? [];
		if (next === undefined) {
			this.#namespaces.delete(namespace);
		} else {
			[found.partition, found.names] = next;
			found.others?.delete(found.partition);
		}
	}
}

/** The values of one tenancy by name: a single one, or several. */
type Names<V> = { readonly name: string; readonly value: V } | Map<string, V>;

/** The names of one namespace: in the first partition that had it, and in others. */
interface Namespace<V> {
	partition: string;
	names: Names<V>;
	others: Map<string, Names<V>> | undefined;
}
