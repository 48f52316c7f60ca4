import type { Resource } from "@plinth/proto";
import { nameKey, type ResourceName } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import {
	type CommitResult,
	decorateBackend,
	type Mutation,
	type Rebase,
	type StorageBackend,
	type WatchEvent,
} from "@plinth/storage";
import { isStreamFault, streamFaults, withStreamFault } from "@plinth/test-support";

/** The faults of a storage that the checks must detect. */
export const plantedFaults = [
	...streamFaults,
	"stale read",
	"lost write",
	"version reused",
	"rebase on an outdated resource",
] as const;

/** One of the faults. */
export type PlantedFault = (typeof plantedFaults)[number];

/** The probability of a fault per occasion: one or two faults per run. */
const share = 0.05;

/** The storage with one kind of fault, injected at times that the seed determines. */
export function withFault(
	backend: StorageBackend,
	fault: PlantedFault,
	random: Random,
): StorageBackend {
	const strikes = () => random.next() < share;
	if (isStreamFault(fault)) {
		const occurs = fault === "swapped events" ? isLive : isChange;
		return decorateBackend(backend, {
			watchList: (query, options) =>
				withStreamFault(
					backend.watchList(query, options),
					fault,
					(event) => occurs(event) && strikes(),
				),
		});
	}
	switch (fault) {
		case "stale read":
			return withStaleReads(backend, strikes);
		case "lost write":
			return withLostWrites(backend, strikes);
		case "version reused":
			return withReusedVersions(backend, strikes);
		case "rebase on an outdated resource":
			return withOutdatedRebase(backend, () => random.next() < 0.3);
	}
}

function isChange(event: WatchEvent): boolean {
	return event.kind === "upsert" || event.kind === "delete";
}

/** Not within a snapshot, which is unordered. */
function isLive(event: WatchEvent): boolean {
	return isChange(event) && event.version !== undefined;
}

/** A read returns what the resource was before its newest change. */
function withStaleReads(backend: StorageBackend, strikes: () => boolean): StorageBackend {
	const versions = new Map<string, { readonly newest: Resource; readonly before?: Resource }>();
	function stale(name: ResourceName, resource: Resource): Resource {
		const key = nameKey(name);
		const known = versions.get(key);
		if (known?.newest !== resource) {
			versions.set(key, { newest: resource, ...(known && { before: known.newest }) });
		}
		const before = versions.get(key)?.before;
		return before !== undefined && strikes() ? before : resource;
	}
	return decorateBackend(backend, {
		read: async (id, options) => stale(id, await backend.read(id, options)),
		async lookup(name, options) {
			const resource = await backend.lookup(name, options);
			return resource && stale(name, resource);
		},
	});
}

/** A commit reports success without storing anything. */
function withLostWrites(backend: StorageBackend, strikes: () => boolean): StorageBackend {
	return decorateBackend(backend, {
		async commit(mutations, options) {
			if (options?.dryRun || !strikes()) {
				return backend.commit(mutations, options);
			}
			const { version, resources } = await backend.commit(mutations, { ...options, dryRun: true });
			const next = String(Number(version) + 1);
			return {
				version: next,
				resources: resources.map((resource) => resource && { ...resource, version: next }),
			};
		},
	});
}

/** A commit that is decided again is decided on what the resource was before its newest change. */
function withOutdatedRebase(backend: StorageBackend, strikes: () => boolean): StorageBackend {
	const before = new Map<string, Resource>();
	const newest = new Map<string, Resource>();
	return decorateBackend(backend, {
		async commit(mutations, { rebase, ...options } = {}) {
			const outdated: Rebase = (stored) => {
				const former = stored?.id && before.get(nameKey(stored.id));
				const occurs = former?.id?.uid === stored?.id?.uid && strikes();
				return rebase?.(
					occurs && former && stored ? { ...former, version: stored.version } : stored,
				);
			};
			const commit = await backend.commit(mutations, {
				...options,
				...(rebase && { rebase: outdated }),
			});
			for (const resource of commit.resources) {
				const key = resource?.id && nameKey(resource.id);
				if (resource === undefined || key === undefined) {
					continue;
				}
				const known = newest.get(key);
				if (known !== undefined) {
					before.set(key, known);
				}
				newest.set(key, resource);
			}
			return commit;
		},
	});
}

/**
 * A commit is reported under the version of the previous one: in its response, in reads and in events. Expected
 * versions of callers are mapped back, so that this is the only fault.
 */
function withReusedVersions(backend: StorageBackend, strikes: () => boolean): StorageBackend {
	const told = new Map<string, string>();
	const tell = (version: string) => told.get(version) ?? version;
	const tellOf = (resource: Resource) =>
		told.has(resource.version) ? { ...resource, version: tell(resource.version) } : resource;
	const real = new Map<string, string>();
	const meant = (mutation: Mutation): Mutation => {
		const { expectedVersion } = mutation;
		const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
		const version = expectedVersion && id && real.get(`${nameKey(id)} ${expectedVersion}`);
		return version ? { ...mutation, expectedVersion: version } : mutation;
	};
	return decorateBackend(backend, {
		async read(id, options) {
			return tellOf(await backend.read(id, options));
		},
		async lookup(name, options) {
			const resource = await backend.lookup(name, options);
			return resource && tellOf(resource);
		},
		async commit(mutations, options): Promise<CommitResult> {
			const commit = await backend.commit(mutations.map(meant), options);
			if (commit.version !== "" && !options?.dryRun && strikes()) {
				const reused = String(Number(commit.version) - 1);
				told.set(commit.version, reused);
				for (const resource of commit.resources) {
					if (resource?.id !== undefined) {
						real.set(`${nameKey(resource.id)} ${reused}`, commit.version);
					}
				}
			}
			return {
				version: tell(commit.version),
				resources: commit.resources.map((resource) => resource && tellOf(resource)),
			};
		},
		async *watchList(query, options) {
			for await (const event of backend.watchList(query, options)) {
				const version = event.version === undefined ? {} : { version: tell(event.version) };
				yield event.kind === "upsert" || event.kind === "delete"
					? { ...event, resource: tellOf(event.resource), ...version }
					: { ...event, version: tell(event.version) };
			}
		},
	});
}
