import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";

/**
 * The uid by which a deployment is known that there is no discovery for: the one under which its storage
 * took part before, else the storage's own, else one that is drawn and kept.
 */
export async function openLocalUid(
	backend: StorageBackend,
	runtime: Runtime,
	storageUid = "",
): Promise<string> {
	await updateDeploymentRecord(backend, runtime, (record) =>
		record.uid === "" ? { ...record, uid: storageUid || newUlid(runtime) } : undefined,
	);
	return (await readDeploymentRecord(backend))?.uid ?? "";
}
