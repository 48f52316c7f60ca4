import type { Resource } from "@plinth/proto";
import type { Access, ResourceType } from "@plinth/resource";
import { mayRead } from "./authorization.ts";

/**
 * The resource as its writer may see it: in full if the writer may read it, otherwise only its ID, version and
 * generation.
 *
 * @param mayReadStored - whether the writer may read the stored resource, whose status this one has. A dry run
 *   must not make it readable.
 */
export function shownToWriter(
	type: ResourceType,
	access: Access,
	written: Resource,
	mayReadStored = true,
): Resource {
	const { $typeName, id, version, generation } = written;
	return mayReadStored && id !== undefined && mayRead(type, access, written, id)
		? written
		: {
				...{ $typeName, version, generation },
				...(id && { id }),
				...{ metadata: {}, status: {}, ownerReferences: [] },
			};
}
