import type { DeploymentRecord } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import {
	hasGivenUp,
	readDeploymentRecord,
	updateDeploymentRecord,
} from "../succession/deployment-record.ts";

/** The identity of a deployment, kept by its storage. */
export interface OwnIdentity {
	/** The uid of its registration; empty if it must register first, or again. */
	readonly uid: string;
	/** Its previous uid; empty if none. */
	readonly predecessorUid: string;
	/** All uids that it has had before, also those that were given up without a deletion. */
	readonly formerUids: readonly string[];
	/** Identifies this storage and this incarnation of it. */
	readonly storageIncarnation: string;
	/** Whether the references of its predecessor are established under its uid. */
	readonly established: boolean;
}

/** Options of the functions of this file. */
export interface IdentityOptions {
	readonly backend: StorageBackend;
	readonly runtime: Runtime;
	/** The incarnation that the storage reports. Default: a new one is generated. */
	readonly storageIncarnation?: string;
}

/** Opens the identity of a storage. A restored storage loses its uid: it lacks what happened under it since. */
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

/** The identity of a storage, if it is the incarnation for which it was recorded. */
export async function readIdentity({
	backend,
	storageIncarnation,
}: IdentityOptions): Promise<OwnIdentity | undefined> {
	const identity = identityOf(await readDeploymentRecord(backend));
	const isSame = !storageIncarnation || identity.storageIncarnation === storageIncarnation;
	return isSame ? identity : undefined;
}

/**
 * Whether a deployment may take writes before it has reached a meta deployment: it has a uid, which it has not given up,
 * and all its references are established under it.
 */
export function mayStartAlone({ uid, predecessorUid, established }: OwnIdentity): boolean {
	return uid !== "" && (predecessorUid === "" || established);
}

/**
 * Records the uid of the registration. An existing uid stays, and a uid that was given up is not recorded
 * again.
 */
export async function keepUid(options: IdentityOptions, uid: string): Promise<OwnIdentity> {
	return change(options, (record) =>
		record.uid === "" && !hasGivenUp(record, uid) ? { ...record, uid } : undefined,
	);
}

/** Gives up a uid, under which it must not serve any longer. Does nothing if the storage has another uid by now. */
export async function giveUpUid(options: IdentityOptions, uid: string): Promise<OwnIdentity> {
	return change(options, (record) => (record.uid === uid ? withoutUid(record) : undefined));
}

/** The record before a new registration, under whose uid nothing is established yet. */
export function withoutUid(record: DeploymentRecord): DeploymentRecord {
	return {
		...record,
		uid: "",
		predecessorUid: record.uid || record.predecessorUid,
		formerUids: record.uid === "" ? record.formerUids : [...record.formerUids, record.uid],
		established: false,
		establishedBy: [],
	};
}

async function change(
	{ backend, runtime }: IdentityOptions,
	next: (record: DeploymentRecord) => DeploymentRecord | undefined,
): Promise<OwnIdentity> {
	await updateDeploymentRecord(backend, runtime, next);
	return identityOf(await readDeploymentRecord(backend));
}

function identityOf(record: DeploymentRecord | undefined): OwnIdentity {
	const {
		uid = "",
		predecessorUid = "",
		formerUids = [],
		storageIncarnation = "",
		established = false,
	} = record ?? {};
	return { uid, predecessorUid, formerUids, storageIncarnation, established };
}
