import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import type { OrderedSnapshot } from "./ordered-map.ts";
import { type ListQuery, matches } from "./query.ts";
import { orderKey, prefixSuffices, queryPrefix } from "./resource-key.ts";

/** What a query matches as of one version, however long it takes to read it. */
export interface Snapshot {
	/** The revision that the snapshot is of. */
	readonly version: string;
	/**
	 * The resources, ordered by partition, namespace and name; with `after`, only those behind that
	 * name, which need not be there. Lazy: what is not taken is not read. May be called again.
	 */
	resources(after?: Pick<ResourceName, "tenancy" | "name">): Iterable<Resource>;
}

/** The view that a query has on one family, as it was at one revision. */
export class FamilySnapshot implements Snapshot {
	readonly version: string;
	readonly #query: ListQuery;
	readonly #index: OrderedSnapshot<Resource>;

	constructor(query: ListQuery, index: OrderedSnapshot<Resource>, revision: number) {
		this.#query = query;
		this.#index = index;
		this.version = String(revision);
	}

	*resources(after?: Pick<ResourceName, "tenancy" | "name">): Generator<Resource, void, undefined> {
		const query = this.#query;
		const found = this.#index.scan(
			queryPrefix(query),
			after === undefined ? undefined : orderKey(after),
		);
		if (prefixSuffices(query)) {
			yield* found;
			return;
		}
		for (const resource of found) {
			if (matches(query, resource)) {
				yield resource;
			}
		}
	}
}
