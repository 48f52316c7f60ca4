import { createHash } from "node:crypto";
import type { Resource } from "@plinth/proto";
import { decodeShared, idOf, Namespace, Partition, typeOf } from "@plinth/resource";
import type { ReadOptions, StorageBackend } from "@plinth/storage";
import { untilChanged } from "../export/follow-resource.ts";

/** What the policies of a partition and of its namespaces offer to one region. */
export interface PartitionOffer {
	readonly partition: string;
	/** The namespaces that are offered; absent if the whole partition is. Never empty. */
	readonly namespaces?: ReadonlySet<string>;
}

/**
 * What is offered to a region, by partition: all of it if its policy names the region, and otherwise the namespaces whose
 * policies do. Partitions of which nothing is offered are left out.
 *
 * @param partition - one partition, or `*` for all.
 * @throws StorageUnavailable.
 */
export async function partitionOffers(
	backend: Pick<StorageBackend, "lookup" | "list">,
	region: string,
	partition: string,
	options: ReadOptions,
): Promise<readonly PartitionOffer[]> {
	const offers = new Map<string, PartitionOffer>();
	for (const unit of await partitions(backend, partition, options)) {
		if (namesRegion(unit, region) && unit.id !== undefined) {
			offers.set(unit.id.name, { partition: unit.id.name });
		}
	}
	const namespaces = new Map<string, Set<string>>();
	for (const unit of (await backend.list(namespacesOf(partition), options)).resources) {
		const inside = unit.id?.tenancy?.partition ?? "";
		if (!offers.has(inside) && namesRegion(unit, region) && unit.id !== undefined) {
			const named = namespaces.get(inside) ?? new Set();
			namespaces.set(inside, named.add(unit.id.name));
		}
	}
	for (const [inside, named] of namespaces) {
		offers.set(inside, { partition: inside, namespaces: named });
	}
	return [...offers.values()].toSorted((a, b) => (a.partition < b.partition ? -1 : 1));
}

/**
 * Changes with what is offered: with the namespaces, and with the versions of types. Resources in a version that the source no
 * longer serves are not offered, and only a snapshot tells so.
 *
 * @param types - the keys of the types, in order.
 */
export function generationOf({ namespaces }: PartitionOffer, types: readonly string[]): string {
	const named = namespaces && [...namespaces].toSorted();
	return createHash("sha256")
		.update(JSON.stringify([named ?? "all", types]))
		.digest("base64url");
}

/**
 * Resolves when something else is offered to the region.
 *
 * @throws as the watches of a storage; the reason of the signal.
 */
export async function untilOfferChanged(
	backend: Pick<StorageBackend, "watchList">,
	offer: PartitionOffer,
	region: string,
	signal: AbortSignal,
): Promise<string> {
	const isWhole = offer.namespaces === undefined;
	const partition = { type: typeOf(Partition.type), name: offer.partition };
	const changed = [
		// A partition that is gone had no resources, and offers nothing more.
		untilChanged(backend, partition, (unit) => namesRegion(unit, region) === isWhole, signal),
		...(isWhole ? [] : [untilNamespacesChanged(backend, offer, region, signal)]),
	];
	await Promise.race(changed);
	return offerChanged(offer, region);
}

/** What is said of an offer that is no longer what it was. */
export function offerChanged({ partition }: PartitionOffer, region: string): string {
	return `what is offered of partition ${partition} to region ${region} has changed`;
}

/**
 * Whether policies offer what is in a namespace, as they are stored now: the watches of them may be behind.
 *
 * @param namespace - empty for a resource of scope partition.
 * @throws StorageUnavailable.
 */
export async function isOffered(
	backend: Pick<StorageBackend, "lookup">,
	{ partition, namespace }: { readonly partition: string; readonly namespace: string },
	region: string,
): Promise<boolean> {
	const ids = [
		idOf(Partition, partition),
		...(namespace === "" ? [] : [idOf(Namespace, namespace, { partition })]),
	];
	for (const id of ids) {
		const unit = await backend.lookup(id);
		if (unit !== undefined && namesRegion(unit, region)) {
			return true;
		}
	}
	return false;
}

async function untilNamespacesChanged(
	backend: Pick<StorageBackend, "watchList">,
	{ partition, namespaces = new Set() }: PartitionOffer,
	region: string,
	signal: AbortSignal,
): Promise<void> {
	const seen = new Set<string>();
	for await (const event of backend.watchList(namespacesOf(partition), { signal })) {
		if (event.kind === "end-of-snapshot") {
			if (!namespaces.isSubsetOf(seen)) {
				return;
			}
		} else if ("resource" in event) {
			const name = event.resource.id?.name ?? "";
			const isNamed = event.kind === "upsert" && namesRegion(event.resource, region);
			if (isNamed !== namespaces.has(name)) {
				return;
			}
			if (isNamed) {
				seen.add(name);
			}
		}
	}
}

async function partitions(
	backend: Pick<StorageBackend, "lookup" | "list">,
	partition: string,
	options: ReadOptions,
): Promise<readonly Resource[]> {
	if (partition === "*") {
		const query = {
			type: Partition.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "",
		};
		return (await backend.list(query, options)).resources;
	}
	const stored = await backend.lookup(idOf(Partition, partition), options);
	return stored === undefined ? [] : [stored];
}

function namespacesOf(partition: string) {
	return { type: Namespace.type, tenancy: { partition, namespace: "" }, namePrefix: "" };
}

/** Whether the policy of a partition or a namespace names the region. */
function namesRegion(unit: Resource, region: string): boolean {
	const { copies } =
		unit.id?.type?.kind === Partition.type.kind
			? decodeShared(Partition, unit).data
			: decodeShared(Namespace, unit).data;
	return copies?.regions.includes(region) ?? false;
}
