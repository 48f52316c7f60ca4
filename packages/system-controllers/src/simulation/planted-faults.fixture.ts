import { Namespace, Partition, Tombstone } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";

/** Faults of a server that the simulation must detect. */
export const plantedFaults = [
	"the census leaves out unregistered types",
	"the census leaves out tombstones",
	"the census is older than the mark",
	"writes do not assert their tenancy",
] as const;

/** One of them. */
export type PlantedFault = (typeof plantedFaults)[number];

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
				commit: (mutations, options) => {
					const { group } = Namespace.type;
					const kinds = [Namespace.type.kind, Partition.type.kind];
					const kept = mutations.filter(
						({ op, ...mutation }) =>
							op !== "assert" ||
							!("id" in mutation) ||
							mutation.id.type?.group !== group ||
							!kinds.includes(mutation.id.type.kind),
					);
					return backend.commit(kept, options);
				},
			});
	}
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
