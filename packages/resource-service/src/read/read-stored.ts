import type { ID, Resource } from "@plinth/proto";
import {
	type Consistency,
	GroupVersionMismatch,
	NotFound,
	type StorageBackend,
} from "@plinth/storage";

/** The resource stored under that name, with any uid and group version, or `undefined`. */
export async function readStored(
	backend: StorageBackend,
	id: ID,
	consistency: Consistency,
): Promise<Resource | undefined> {
	try {
		return await backend.read({ ...id, uid: "" }, { consistency });
	} catch (failure) {
		if (failure instanceof NotFound) {
			return undefined;
		}
		if (failure instanceof GroupVersionMismatch) {
			return failure.stored;
		}
		throw failure;
	}
}
