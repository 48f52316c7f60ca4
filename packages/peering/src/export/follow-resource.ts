import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";

/**
 * Resolves when a resource of scope cluster is no longer as it was: when it is gone, or `isSame` is false for it.
 *
 * @throws as the watches of a storage; the reason of the signal.
 */
export async function untilChanged(
	backend: Pick<StorageBackend, "watchList">,
	{ type, name }: Pick<ResourceName, "name"> & { readonly type: NonNullable<ResourceName["type"]> },
	isSame: (resource: Resource) => boolean,
	signal: AbortSignal,
): Promise<void> {
	let isThere = false;
	const query = { type, tenancy: { partition: "", namespace: "" }, namePrefix: name };
	for await (const event of backend.watchList(query, { signal })) {
		if (event.kind === "end-of-snapshot") {
			if (!isThere) {
				return;
			}
		} else if ("resource" in event && event.resource.id?.name === name) {
			isThere = event.kind === "upsert" && isSame(event.resource);
			if (!isThere) {
				return;
			}
		}
	}
}
