import { create } from "@bufbuild/protobuf";
import {
	type DeploymentRecord,
	DeploymentRecordSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { putRecord, readRecord } from "../shadow/shadow-records.ts";

/** The name of the record that keeps the identity of a storage. */
export const deploymentRecord = "deployment";

/** The record, or `undefined` if the storage has not registered yet. */
export async function readDeploymentRecord(
	backend: StorageBackend,
): Promise<DeploymentRecord | undefined> {
	const stored = await readRecord(backend, deploymentRecord, { consistency: "strong" });
	return stored?.record.case === "deployment" ? stored.record.value : undefined;
}

/** Changes the record, and reads it again on conflict. `change` returns `undefined` for no change. */
export async function updateDeploymentRecord(
	backend: StorageBackend,
	runtime: Runtime,
	change: (record: DeploymentRecord) => DeploymentRecord | undefined,
): Promise<void> {
	for (;;) {
		const stored = await readRecord(backend, deploymentRecord, { consistency: "strong" });
		const before = stored?.record.case === "deployment" ? stored.record.value : undefined;
		const value = change(before ?? create(DeploymentRecordSchema));
		if (value === undefined) {
			return;
		}
		try {
			await backend.commit([
				putRecord(runtime, deploymentRecord, stored?.resource, { case: "deployment", value }),
			]);
			return;
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}
}
