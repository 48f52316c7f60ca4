import { cloneResource, type Resource } from "@plinth/proto";
import { displayName, newUlid, sameName } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";

/**
 * Stores resources unchanged, including their statuses and without applying any rules; required fields (uid,
 * generation) are filled in, and so is the uid of an owner that is one of them.
 *
 * @throws Error if one has no ID.
 */
export async function storeResources(
	backend: StorageBackend,
	resources: readonly Resource[],
	runtime: Runtime,
): Promise<void> {
	const stored = resources.map((given) => {
		const resource = cloneResource(given);
		if (resource.id === undefined) {
			throw new Error("a resource for the cache of a test needs an id");
		}
		resource.id.uid ||= newUlid(runtime);
		resource.generation ||= newUlid(runtime);
		return resource;
	});
	for (const resource of stored) {
		const { owner } = resource;
		if (owner !== undefined && owner.uid === "") {
			const found = stored.find(({ id }) => sameName(id, owner));
			if (found === undefined) {
				throw new Error(
					`the owner of a resource must be among the resources or have a uid: ${displayName(owner)}`,
				);
			}
			owner.uid = found.id?.uid ?? "";
		}
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	}
}
