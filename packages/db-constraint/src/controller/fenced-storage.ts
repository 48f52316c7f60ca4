import type { Fence } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";

/** The storage, which refuses commits made through it once the fence is no longer current. */
export function fencedStorage(backend: StorageBackend, fence: Fence): StorageBackend {
	return decorateBackend(backend, {
		commit: (mutations, options) => backend.commit(mutations, { ...options, fence }),
	});
}
