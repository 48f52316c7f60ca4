import type { Resource } from "@plinth/proto";
import type { Access, ResourceType } from "@plinth/resource";
import { mayRead } from "./authorization.ts";

/**
 * The resource as its writer may see it: whole with the right to read it, otherwise its ID, version and
 * generation alone.
 *
 * @param mayReadStored - whether the writer may read what is stored, of which the resource has the status: a
 *   write that is only tried does not make it readable.
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
