import type { DeploymentRecord } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { readDeploymentRecord, updateDeploymentRecord } from "../deployment-record.ts";

/** The identity that a storage keeps. */
export interface OwnIdentity {
	/** Under which it registered; empty where it has not, or must do so anew. */
	readonly uid: string;
	/** The uid that it had before; empty for none. */
	readonly predecessorUid: string;
	/** Tells this storage, and this life of it, from all others. */
	readonly storageIncarnation: string;
}

/** What the identity of a storage is kept with. */
export interface IdentityOptions {
	readonly backend: StorageBackend;
	readonly runtime: Runtime;
	/** What the storage says of itself; one is drawn where it says nothing. */
	readonly storageIncarnation?: string;
}

/**
 * The identity of a storage. One that was restored to its past loses its uid: what has happened under
 * that since, it does not know.
 */
export async function openIdentity(options: IdentityOptions): Promise<OwnIdentity> {
	return change(options, (record) => {
		const storageIncarnation =
			options.storageIncarnation || record.storageIncarnation || newUlid(options.runtime);
		if (record.storageIncarnation === storageIncarnation) {
			return undefined;
		}
		const isRestored = record.storageIncarnation !== "";
		return { ...(isRestored ? withoutUid(record) : record), storageIncarnation };
	});
}

/**
 * Keeps the uid under which the storage has registered. Where one is kept already, that stays; one that
 * was given up does not come back.
 */
export async function keepUid(options: IdentityOptions, uid: string): Promise<OwnIdentity> {
	return change(options, (record) =>
		record.uid === "" && record.predecessorUid !== uid ? { ...record, uid } : undefined,
	);
}

/** Gives up the uid: it has been deleted. Nothing changes where another one is kept by now. */
export async function giveUpUid(options: IdentityOptions, uid: string): Promise<OwnIdentity> {
	return change(options, (record) => (record.uid === uid ? withoutUid(record) : undefined));
}

/** Another uid is to follow, under which nothing has been established yet. */
function withoutUid(record: DeploymentRecord): DeploymentRecord {
	return {
		...record,
		uid: "",
		predecessorUid: record.uid || record.predecessorUid,
		established: false,
		establishedBy: [],
	};
}

async function change(
	{ backend, runtime }: IdentityOptions,
	next: (record: DeploymentRecord) => DeploymentRecord | undefined,
): Promise<OwnIdentity> {
	await updateDeploymentRecord(backend, runtime, next);
	const {
		uid = "",
		predecessorUid = "",
		storageIncarnation = "",
	} = (await readDeploymentRecord(backend)) ?? {};
	return { uid, predecessorUid, storageIncarnation };
}
