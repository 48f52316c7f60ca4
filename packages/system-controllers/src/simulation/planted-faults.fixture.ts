import type { ID } from "@plinth/proto";
import { Namespace, Partition, Tombstone } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";

/** Faults of a server that the simulation of tenants must detect. */
export const plantedFaults = [
	"the census leaves out unregistered types",
	"the census leaves out tombstones",
	"the census is older than the mark",
	"writes do not assert their tenancy",
] as const;

/** Faults that the simulation of owners must detect. */
export const plantedOwnerFaults = [
	"writes do not assert their owner",
	"owned resources are listed as of before they were created",
] as const;

/** One of them. */
export type PlantedFault = (typeof plantedFaults | typeof plantedOwnerFaults)[number];

/** The storage of a server with a fault. The server registers the types with the given keys. */
export function withFault(
	backend: StorageBackend,
	fault: PlantedFault,
	{ registered, random }: { readonly registered: ReadonlySet<string>; readonly random: Random },
): StorageBackend {
	switch (fault) {
		case "the census leaves out unregistered types":
			return withCensus(backend, (key) => registered.has(key));
		case "the census leaves out tombstones":
			return withCensus(backend, (key) => key !== Tombstone.key);
		case "the census is older than the mark":
			return withOldCensus(backend, random);
		case "writes do not assert their tenancy":
			return decorateBackend(backend, {
				commit: (mutations, options) =>
					backend.commit(
						mutations.filter((mutation) => mutation.op !== "assert" || !isUnit(mutation.id)),
						options,
					),
			});
		case "writes do not assert their owner":
			return decorateBackend(backend, {
				commit: (mutations, options) =>
					backend.commit(
						mutations.filter((mutation) => mutation.op !== "assert" || isUnit(mutation.id)),
						options,
					),
			});
		case "owned resources are listed as of before they were created":
			return decorateBackend(backend, {
				listByOwner: async (owner, options) =>
					random.next() < 0.1 ? [] : backend.listByOwner(owner, options),
			});
	}
}

function isUnit({ type }: ID): boolean {
	const kinds: readonly (string | undefined)[] = [Namespace.type.kind, Partition.type.kind];
	return type?.group === Namespace.type.group && kinds.includes(type.kind);
}

function withCensus(backend: StorageBackend, counts: (key: string) => boolean): StorageBackend {
	return decorateBackend(backend, {
		countByTypeIn: async (unit, options) =>
			new Map([...(await backend.countByTypeIn(unit, options))].filter(([key]) => counts(key))),
	});
}

/** Sometimes reports a unit as empty, as it was when it was created. */
function withOldCensus(backend: StorageBackend, random: Random): StorageBackend {
	return decorateBackend(backend, {
		countByTypeIn: async (unit, options) =>
			random.next() < 0.1 ? new Map() : backend.countByTypeIn(unit, options),
	});
}
