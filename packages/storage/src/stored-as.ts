import type { ID, Resource } from "@plinth/proto";
import { GroupVersionMismatch, NotFound } from "./errors.ts";

/**
 * What is stored under the name of an ID, if it is what the ID names: of its group version, and of its uid if it has one.
 *
 * @throws NotFound; GroupVersionMismatch.
 */
export function storedAs(id: ID, stored: Resource | undefined): Resource {
	if (stored === undefined || (id.uid !== "" && stored.id?.uid !== id.uid)) {
		throw new NotFound(id);
	}
	if (id.type !== undefined && stored.id?.type?.groupVersion !== id.type.groupVersion) {
		throw new GroupVersionMismatch(id.type, stored);
	}
	return stored;
}
