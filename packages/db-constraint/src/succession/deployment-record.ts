import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
	type DeploymentRecord,
	DeploymentRecordSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import { type Mutation, type ReadOptions, Refused, type StorageBackend } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { putRecord, readRecord, recordId } from "../shadow/shadow-records.ts";

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

/** Whether a server of the deployment has given up a uid. */
export function hasGivenUp({ predecessorUid, formerUids }: DeploymentRecord, uid: string): boolean {
	return predecessorUid === uid || formerUids.includes(uid);
}

/**
 * The assert that fails a commit once another server of the deployment has given up the uid of this one. What other
 * deployments have been told under that uid counts only if the commit comes before: the next uid then takes it over.
 *
 * @throws Refused Unavailable if that has happened.
 */
export function assertUid(
	context: Pick<ConstraintContext, "backend" | "environment" | "index">,
	options: ReadOptions = {},
): readonly Mutation[] | Promise<readonly Mutation[]> {
	if (isPlanted("commit under a uid that was given up")) {
		return [];
	}
	// The copy in the index is slightly stale at worst: then the commit fails, and is tried again.
	const { deployment } = context.index;
	return deployment === undefined || options.consistency === "strong"
		? assertStoredUid(context, options)
		: [uidIn(context, deployment.record, deployment.version)];
}

async function assertStoredUid(
	context: Pick<ConstraintContext, "backend" | "environment">,
	options: ReadOptions,
): Promise<readonly Mutation[]> {
	const stored = await readRecord(context.backend, deploymentRecord, options);
	const record = stored?.record.case === "deployment" ? stored.record.value : undefined;
	return [uidIn(context, record, stored?.resource.version ?? "")];
}

function uidIn(
	{ environment }: Pick<ConstraintContext, "environment">,
	record: DeploymentRecord | undefined,
	expectedVersion: string,
): Mutation {
	const { uid } = environment.self;
	if (record !== undefined && hasGivenUp(record, uid)) {
		throw new Refused(
			Code.Unavailable,
			`nothing was written: deployment ${uid} has been given up, and this server has not stopped yet`,
		);
	}
	return { op: "assert", id: recordId(deploymentRecord), expectedVersion };
}
