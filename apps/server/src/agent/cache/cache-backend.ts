import { type StateStore, type StorageBackend, StorageUnavailable } from "@plinth/storage";

/** A storage that is only read: the state of a cache, which its upstream watch changes. */
export function cacheBackend(store: StateStore): StorageBackend {
	const notCached = async (): Promise<never> => {
		throw new StorageUnavailable("caches are only read");
	};
	return {
		read: async (id) => store.read(id),
		lookup: async (name) => store.lookup(name),
		lookupNow: (name) => store.lookup(name),
		list: async (query) => {
			const snapshot = store.snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, options) => store.snapshot(query, options?.heldBy),
		listByOwner: notCached,
		countByType: async () => store.countByType(),
		countByTypeIn: async (unit) => store.countByTypeIn(unit),
		watchList: (query, options) => store.watch(query, options, async () => {}),
		commit: notCached,
		// The cache has reached the position of a call before the call is served.
		catchUp: async () => store.version,
		close: async () => {},
	};
}
