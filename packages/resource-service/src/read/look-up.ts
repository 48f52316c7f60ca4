import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import type { Consistency, StorageBackend } from "@plinth/storage";

/** What is stored under a name: at once if the read may be eventually consistent, and if the storage need not wait. */
export function lookUp(
	backend: Pick<StorageBackend, "lookup" | "lookupNow">,
	name: ResourceName,
	consistency: Consistency,
): Resource | undefined | Promise<Resource | undefined> {
	return consistency === "eventual" && backend.lookupNow !== undefined
		? backend.lookupNow(name)
		: backend.lookup(name, { consistency });
}
