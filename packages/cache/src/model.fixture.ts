import type { Resource } from "@plinth/proto";
import { decode, type ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import { isKeyPrefix, type KeyQuery } from "./key.ts";

/** A model of a cache: an array and filters over strings, slow and obviously correct. */
export class ModelCache {
	readonly #type: ResourceType;
	#resources: Resource[] = [];

	constructor(type: ResourceType) {
		this.#type = type;
	}

	get all(): readonly Resource[] {
		return this.#resources;
	}

	insert(resource: Resource): void {
		this.delete(resource);
		this.#resources.push(resource);
	}

	delete(resource: Resource): void {
		this.#resources = this.#resources.filter(
			(other) => idString(other) !== idString(resource) || other.id?.region !== resource.id?.region,
		);
	}

	/** The resources with a key that starts with the query, ordered by region, key and ID, without duplicates. */
	list(query: KeyQuery, index?: AnyIndex, region = ""): Resource[] {
		const prefix = queryString(query);
		return this.#filed(region, index, (key) => key.startsWith(prefix));
	}

	/** The resources with a key that is a prefix of `key`, shortest first, then by ID, without duplicates. */
	parents(key: readonly string[], index?: AnyIndex, region = ""): Resource[] {
		const whole = queryString(key);
		return this.#filed(region, index, (parent) => whole.startsWith(parent));
	}

	/** The first with exactly the key. */
	get(key: readonly string[], index?: AnyIndex, region = ""): Resource | undefined {
		return this.#filed(region, index, (other) => other === queryString(key))[0];
	}

	#filed(
		region: string,
		index: AnyIndex | undefined,
		accept: (key: string) => boolean,
	): Resource[] {
		const filed = this.#resources
			.filter(({ id }) => region === "*" || (id?.region ?? "") === region)
			.flatMap((resource) =>
				this.#keys(resource, index).map((key) => ({ key, id: idString(resource), resource })),
			);
		filed.sort(
			(a, b) =>
				compare(a.resource.id?.region ?? "", b.resource.id?.region ?? "") ||
				compare(a.key, b.key) ||
				compare(a.id, b.id),
		);
		return [...new Set(filed.filter(({ key }) => accept(key)).map(({ resource }) => resource))];
	}

	#keys(resource: Resource, index: AnyIndex | undefined): string[] {
		return index === undefined
			? [idString(resource)]
			: index.keys(decode(this.#type, resource)).map(queryString);
	}
}

function compare(a: string, b: string): number {
	return a === b ? 0 : a < b ? -1 : 1;
}

/** Segments that end in a separator, and the beginning of one that does not. */
function queryString(query: KeyQuery): string {
	const { segments, segmentPrefix } = isKeyPrefix(query)
		? query
		: { segments: query, segmentPrefix: "" };
	return segments.map((segment) => `${segment}\0`).join("") + segmentPrefix;
}

/** Resources of a namespaced type by ID. */
function idString({ id }: Resource): string {
	return queryString([id?.tenancy?.partition ?? "", id?.tenancy?.namespace ?? "", id?.name ?? ""]);
}
