import { cloneResource, type Resource } from "@plinth/proto";
import { displayName, newUlid, sameName } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";

/**
 * Puts resources into a storage as they are, past all rules, statuses included; what a stored
 * resource can't lack (uid, generation) is filled in, and so is the uid of an owner that is one of
 * them.
 *
 * @throws Error where one has no ID.
 */
export async function storeResources(
	backend: StorageBackend,
	resources: readonly Resource[],
	runtime: Runtime,
): Promise<void> {
	const stored = resources.map((given) => {
		const resource = cloneResource(given);
		if (resource.id === undefined) {
			throw new Error("a resource for a test's cache needs an id");
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
					`the owner of a given resource must be given too, or have a uid: ${displayName(owner)}`,
				);
			}
			owner.uid = found.id?.uid ?? "";
		}
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	}
}
