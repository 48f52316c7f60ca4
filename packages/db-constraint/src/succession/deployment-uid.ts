import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";

/**
 * The uid of a deployment without discovery: the one that its storage recorded before, else the storage's
 * own, else a new one, which is recorded.
 */
export async function ensureDeploymentUid(
	backend: StorageBackend,
	runtime: Runtime,
	storageUid = "",
): Promise<string> {
	await updateDeploymentRecord(backend, runtime, (record) =>
		record.uid === "" ? { ...record, uid: storageUid || newUlid(runtime) } : undefined,
	);
	return (await readDeploymentRecord(backend))?.uid ?? "";
}
