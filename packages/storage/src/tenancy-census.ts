import type { Resource, Type } from "@plinth/proto";
import { gvkKey, sameType } from "@plinth/resource";
import { storedPartition } from "./state-store/resource-key.ts";

/** A namespace; or, without `namespace`, a partition with all its namespaces. */
export interface TenancyUnit {
	readonly partition: string;
	/** Empty for the resources of the partition itself. */
	readonly namespace?: string;
	/** Counts the copies of this region's resources, instead of what is no regional copy. */
	readonly region?: string | undefined;
}

/**
 * Counts the resources of each type in each namespace and partition. A write updates at most three
 * counters, and none if it replaces a resource by one of the same group version; a query copies the
 * counters of one unit, so its cost depends on the number of types, not of resources.
 *
 * Counters and units that reach zero are removed, so that deleted tenants leave nothing behind.
 */
export class TenancyCensus {
	readonly #all: TypeCounts = new Map();
	readonly #partitions = new Map<string, PartitionCounts>();
	/** The type of the last change with its key: the next change usually has the same type. */
	#last: { readonly type: Type; readonly key: string } | undefined;

	/** Updates the counters for a change of the resource stored under one name. */
	update(previous: Resource | undefined, next: Resource | undefined): void {
		const before = previous?.id?.type;
		const after = next?.id?.type;
		if (before?.groupVersion === after?.groupVersion && previous !== undefined) {
			return;
		}
		if (before !== undefined) {
			this.#add(previous, before, -1);
		}
		if (after !== undefined) {
			this.#add(next, after, 1);
		}
	}

	/** The number of resources of each type, by type key. */
	all(): ReadonlyMap<string, number> {
		return copied(this.#all);
	}

	/** The number of resources of each type in the unit, by type key. */
	in({ partition, namespace, region }: TenancyUnit): ReadonlyMap<string, number> {
		const counts = this.#partitions.get(storedPartition({ tenancy: { partition }, region }));
		return copied(namespace === undefined ? counts?.all : counts?.namespaces.get(namespace));
	}

	#add(resource: Resource | undefined, type: Type, by: 1 | -1): void {
		const { namespace = "" } = resource?.id?.tenancy ?? {};
		const partition = storedPartition(resource?.id ?? {});
		const key = this.#keyOf(type);
		let counts = this.#partitions.get(partition);
		if (counts === undefined) {
			counts = { all: new Map(), namespaces: new Map() };
			this.#partitions.set(partition, counts);
		}
		let inNamespace = counts.namespaces.get(namespace);
		if (inNamespace === undefined) {
			inNamespace = new Map();
			counts.namespaces.set(namespace, inNamespace);
		}
		add(this.#all, key, by);
		add(counts.all, key, by);
		add(inNamespace, key, by);
		if (inNamespace.size === 0) {
			counts.namespaces.delete(namespace);
		}
		if (counts.all.size === 0) {
			this.#partitions.delete(partition);
		}
	}

	#keyOf(type: Type): string {
		if (this.#last === undefined || !sameType(this.#last.type, type)) {
			this.#last = { type, key: gvkKey(type) };
		}
		return this.#last.key;
	}
}

/** Counters by the key of the type: objects, so that counting finds an entry and does not write it. */
type TypeCounts = Map<string, { count: number }>;

interface PartitionCounts {
	/** Of the partition itself and all its namespaces. */
	readonly all: TypeCounts;
	readonly namespaces: Map<string, TypeCounts>;
}

function add(counts: TypeCounts, key: string, by: 1 | -1): void {
	const counter = counts.get(key);
	if (counter === undefined) {
		counts.set(key, { count: by });
	} else if (counter.count + by === 0) {
		counts.delete(key);
	} else {
		counter.count += by;
	}
}

function copied(counts: TypeCounts | undefined): ReadonlyMap<string, number> {
	const copy = new Map<string, number>();
	for (const [key, { count }] of counts ?? []) {
		copy.set(key, count);
	}
	return copy;
}
