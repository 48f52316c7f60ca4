import type { LocalLeases } from "@plinth/runtime";
import { decorateBackend, Fenced, type StorageBackend } from "@plinth/storage";

/** The storage of one server, which refuses the fences that its leases do not know as current. */
export function withLocalFences(
	backend: StorageBackend,
	leases: Pick<LocalLeases, "isCurrent">,
): StorageBackend {
	return decorateBackend(backend, {
		commit: async (mutations, { fence, ...options } = {}) => {
			if (fence !== undefined && !leases.isCurrent(fence)) {
				throw new Fenced(fence.lease);
			}
			return backend.commit(mutations, options);
		},
	});
}
