/**
 * A meta deployment whose storage was restored has forgotten what was registered and deleted since the backup. Others
 * know: each deployment reports what it has read before.
 *
 *     restored ──before it serves──▶ recovering ──every deployment that anyone knows has reported, or was deleted──▶ complete
 *
 * At least one other has reported, so that a backup from before all registrations is not taken for all there is.
 *
 * Its own Deployment says that it is recovering, so that all who read it know that what it lacks proves nothing. The record
 * of the recovery has who has reported, and whom they knew. Invariants:
 *
 * - The record exists exactly while the Deployment says so: both change in one commit.
 * - What a deployment knew is stored before it counts as reported, and the commit that ends the recovery asserts the record
 *   from before the Deployments were listed. So nothing that was reported is missing in a complete registry.
 * - A Deployment is given back only in a commit that asserts that no record says that it was deleted.
 */
import { create } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import {
	type DeletedDeployment as DeletedDeploymentData,
	type Deployment as DeploymentData,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import type { ReportRegistryRequest } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type RegistryRecovery,
	RegistryRecoverySchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	decodeShared,
	encodeData,
	idOf,
	newUlid,
	type ResourceType,
	resourceOf,
	tenancyOf,
} from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, StorageBackend } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import { putRecord, readRecord, recordId, type StoredRecord } from "../shadow/shadow-records.ts";
import { deploymentRecord } from "../succession/deployment-record.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { takenOver } from "./environment.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName, metaService } from "./meta-types.ts";
import { type IdentityOptions, withoutUid } from "./own-identity.ts";
import { deploymentOf, type RegisteredDeployment, recoveringOf } from "./registry-view.ts";

/** The record in the storage of a meta deployment that is recovering. */
const recoveryRecord = "recovery";

/** A commit has at most so many Deployments and records of deletions that are given back. */
const batchSize = 40;

/** A storage of a meta deployment, without references. */
export interface MetaStorage {
	readonly backend: StorageBackend;
	readonly runtime: Runtime;
}

/**
 * Opens the storage of a meta deployment. If that was restored, it is recovering from now on, under a new uid. Must
 * complete before anyone can read from this server.
 *
 * @throws StorageError if the storage can't be read or written.
 */
export async function openMetaStorage(
	options: IdentityOptions,
	deployment: DeploymentConfiguration,
): Promise<void> {
	const { backend, runtime, storageIncarnation } = options;
	if (!storageIncarnation) {
		return;
	}
	for (;;) {
		const stored = await readRecord(backend, deploymentRecord, { consistency: "strong" });
		const before = stored?.record.case === "deployment" ? stored.record.value : undefined;
		if (!before?.storageIncarnation || before.storageIncarnation === storageIncarnation) {
			return;
		}
		if (isPlanted("take a restored registry for a complete one")) {
			return;
		}
		const record = { ...withoutUid(before), storageIncarnation };
		const registered = await listStrongly(backend, Deployment);
		const own = registered.map(deploymentOf).filter(({ service }) => service === metaService);
		const related = own.flatMap((each) => [each.uid, ...takenOver(each)]);
		const others = new Set(related.filter((uid) => uid !== record.predecessorUid));
		const data = create(DeploymentSchema, {
			...{ service: deployment.service, region: deployment.region, address: deployment.address },
			currentVersion: deployment.version,
			predecessorUid: record.predecessorUid,
			otherPredecessorUids: [...others].sort(),
			...{ storageIncarnation, recovering: true },
		});
		const name = deployment.name ?? `${deployment.service}-${deployment.region}`;
		const id = { ...idOf(Deployment, freeName(name, registered)), uid: newUlid(runtime) };
		const resource = resourceOf(Deployment, { id, data });
		resource.generation = newUlid(runtime);
		const recovery = await readRecord(backend, recoveryRecord, { consistency: "strong" });
		// Who has reported before this restore must report again: the backup may lack what it has given back.
		const value = create(RegistryRecoverySchema, { knownUids: recoveryOf(recovery).knownUids });
		try {
			await backend.commit([
				putRecord(runtime, deploymentRecord, stored?.resource, {
					case: "deployment",
					value: record,
				}),
				{ op: "put", resource, expectedVersion: "" },
				putRecord(runtime, recoveryRecord, recovery?.resource, { case: "recovery", value }),
			]);
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}
}

/**
 * Takes over what a deployment knows of the registry. One that is complete may lack the deployment that reports, if no
 * other one knew of it: it takes over that one alone, if it lacks it, and deletions. The report may be late, and what the
 * deployment has announced since is newer, whatever the clocks say.
 *
 * @throws StorageError if the storage can't be read or written.
 */
export async function acceptReport(
	storage: MetaStorage,
	uid: string,
	report: Pick<ReportRegistryRequest, "deployments" | "deleted" | "knownUids">,
): Promise<void> {
	for (;;) {
		const recovery = await readRecord(storage.backend, recoveryRecord, { consistency: "strong" });
		if (recovery === undefined) {
			const own = report.deployments.filter(({ id }) => id?.uid === uid);
			if (await addOwn(storage, { deployments: own, deleted: report.deleted })) {
				return;
			}
			continue;
		}
		const { reportedBy, knownUids } = recoveryOf(recovery);
		const value = create(RegistryRecoverySchema, {
			reportedBy: [...new Set([...reportedBy, uid])].sort(),
			knownUids: [...new Set([...knownUids, ...report.knownUids])].sort(),
		});
		const given = await givenBack(storage, report);
		const counted = putRecord(storage.runtime, recoveryRecord, recovery.resource, {
			case: "recovery",
			value,
		});
		try {
			const { version: expectedVersion } = recovery.resource;
			const asBefore: Mutation = { op: "assert", id: recordId(recoveryRecord), expectedVersion };
			await commitGiven(storage, given, [asBefore]);
			await storage.backend.commit([counted]);
			return;
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}
}

/** Adds a deployment to a registry that is complete. Returns whether that is done; else it has to be tried again. */
async function addOwn(
	storage: MetaStorage,
	report: Pick<ReportRegistryRequest, "deployments" | "deleted">,
): Promise<boolean> {
	try {
		await commitGiven(storage, await givenBack(storage, report, { replaces: false }));
		return true;
	} catch (failure) {
		if (!isConflict(failure)) {
			throw failure;
		}
		return false;
	}
}

/** Commits what is given back, in parts that a storage takes. Each of these has the asserts. */
async function commitGiven(
	{ backend }: MetaStorage,
	given: readonly (readonly Mutation[])[],
	asserts: readonly Mutation[] = [],
): Promise<void> {
	for (let at = 0; at < given.length; at += batchSize) {
		await backend.commit([...given.slice(at, at + batchSize).flat(), ...asserts]);
	}
}

/**
 * What is to be written of a report, each part of which may be committed by itself.
 *
 * @param options - `replaces`: whether Deployments that exist get the content of the report if that is newer. Default: yes.
 */
async function givenBack(
	{ backend, runtime }: MetaStorage,
	{ deployments, deleted }: Pick<ReportRegistryRequest, "deployments" | "deleted">,
	{ replaces = true }: { readonly replaces?: boolean } = {},
): Promise<readonly (readonly Mutation[])[]> {
	const stored = await listStrongly(backend, Deployment);
	const records = (await listStrongly(backend, DeletedDeployment)).map(deletionOf);
	const gone = new Set(records.map(({ uid }) => uid));
	const given: Mutation[][] = [];
	for (const deletion of deleted.map(deletionOf)) {
		if (!gone.has(deletion.uid) && !isPlanted("forget the deletions that are reported")) {
			gone.add(deletion.uid);
			given.push([deletionRecord(runtime, deletion)]);
		}
	}
	const byUid = new Map(stored.map((each) => [each.id?.uid ?? "", each]));
	const names = [...stored];
	const metas: RegisteredDeployment[] = [];
	for (const resource of deployments) {
		const registered = deploymentOf(resource);
		const { uid } = registered;
		const before = byUid.get(uid);
		const notDeleted: Mutation = { op: "assert", id: idOfDeletion(uid), expectedVersion: "" };
		if (uid === "" || gone.has(uid)) {
			continue;
		}
		if (registered.service === metaService) {
			metas.push(registered);
		} else if (before === undefined) {
			const id = { ...idOf(Deployment, freeName(registered.name, names)), uid };
			const put = resourceOf(Deployment, { id, data: decodeShared(Deployment, resource).data });
			// One that is complete takes only what its deployment says of itself now.
			put.generation = replaces ? resource.generation : newUlid(runtime);
			names.push(put);
			given.push([{ op: "put", resource: put, expectedVersion: "" }, notDeleted]);
		} else if (replaces && before.generation < resource.generation && resource.data !== undefined) {
			const { data, generation } = resource;
			const put = { ...before, data, generation };
			given.push([{ op: "put", resource: put, expectedVersion: before.version }, notDeleted]);
		}
	}
	const related = relatedMetas(stored, metas);
	return related === undefined ? given : [...given, [related]];
}

/**
 * Other incarnations of this meta deployment, which restores have undone: the present one takes them over, as they name no
 * successor, and nobody runs under their uids.
 */
function relatedMetas(
	stored: readonly Resource[],
	metas: readonly RegisteredDeployment[],
): Mutation | undefined {
	const own = ownDeployment(stored);
	if (own === undefined) {
		return undefined;
	}
	const registered = deploymentOf(own);
	const before = new Set(takenOver(registered));
	const all = new Set([...before, ...metas.flatMap((each) => [each.uid, ...takenOver(each)])]);
	all.delete(registered.uid);
	if (all.size === before.size) {
		return undefined;
	}
	all.delete(registered.predecessorUid);
	return replaceData(own, { otherPredecessorUids: [...all].sort() });
}

/** The Deployment of this meta deployment while it is recovering. */
function ownDeployment(stored: readonly Resource[]): Resource | undefined {
	const uid = recoveringOf(stored.map(deploymentOf))?.uid;
	return uid === undefined ? undefined : stored.find(({ id }) => id?.uid === uid);
}

function replaceData(
	stored: Resource,
	fields: Partial<Pick<DeploymentData, "otherPredecessorUids" | "recovering">>,
): Mutation {
	const data = { ...decodeShared(Deployment, stored).data, ...fields };
	const resource = { ...stored, data: encodeData(DeploymentSchema, data) };
	return { op: "put", resource, expectedVersion: stored.version };
}

/** Options of `completeRecovery`. */
export interface CompletionOptions extends MetaStorage {
	/** The deployments of all meta deployments, as far as they are known. */
	readonly known: () => Iterable<RegisteredDeployment>;
	/** Whether the deletion of a deployment is known, also of those that have registered with others. */
	readonly isDeleted: (uid: string) => boolean;
}

/**
 * Ends the recovery if every known deployment has reported.
 *
 * @returns the uids of those that have not, or `undefined` if the registry is complete. None if no deployment is known and
 *   none has reported.
 * @throws StorageError if the storage can't be read or written.
 */
export async function completeRecovery(
	options: CompletionOptions,
): Promise<readonly string[] | undefined> {
	const { backend } = options;
	for (;;) {
		const recovery = await readRecord(backend, recoveryRecord, { consistency: "strong" });
		if (recovery === undefined) {
			return undefined;
		}
		const stored = await listStrongly(backend, Deployment);
		const records = (await listStrongly(backend, DeletedDeployment)).map(deletionOf);
		const own = ownDeployment(stored);
		const waiting = notReported(recoveryOf(recovery), stored, records, options);
		const isReported =
			hasOthers(recoveryOf(recovery), own) ||
			isPlanted("complete a restored registry without any report");
		if (waiting.length > 0 || own === undefined || !isReported) {
			return waiting;
		}
		try {
			await backend.commit([
				{
					op: "delete",
					id: recordId(recoveryRecord),
					expectedVersion: recovery.resource.version,
				},
				replaceData(own, { recovering: false }),
			]);
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}
}

/**
 * Whether another deployment has reported: a backup from before all registrations names none that would know of others, and
 * what this one knows is what was restored.
 */
function hasOthers({ reportedBy }: RegistryRecovery, own: Resource | undefined): boolean {
	const itself = new Set(
		own === undefined || isPlanted("count the report of a restored registry itself")
			? []
			: [own.id?.uid ?? "", ...takenOver(deploymentOf(own))],
	);
	return reportedBy.some((uid) => !itself.has(uid));
}

/** The deployments that someone knows and that have not reported, have no successor and were not deleted. */
function notReported(
	{ reportedBy, knownUids }: RegistryRecovery,
	stored: readonly Resource[],
	records: readonly { readonly uid: string }[],
	{ known, isDeleted }: CompletionOptions,
): readonly string[] {
	const all = [...stored.map(deploymentOf), ...known()];
	const settled = new Set([
		...reportedBy,
		...records.map(({ uid }) => uid),
		...all.flatMap(takenOver),
		ownDeployment(stored)?.id?.uid ?? "",
	]);
	const uids = new Set([...all.map(({ uid }) => uid), ...knownUids]);
	if (isPlanted("complete a restored registry before all have reported")) {
		return [];
	}
	return [...uids].filter((uid) => uid !== "" && !settled.has(uid) && !isDeleted(uid)).sort();
}

/** The Deployments that a complete meta deployment has although they were deleted: a restore has brought them back. */
export async function listDeletedDeployments(
	backend: StorageBackend,
): Promise<readonly Resource[]> {
	const records = (await listStrongly(backend, DeletedDeployment)).map(deletionOf);
	const gone = new Set(records.map(({ uid }) => uid));
	return (await listStrongly(backend, Deployment)).filter(({ id }) => gone.has(id?.uid ?? ""));
}

/** The name, or the first free one with a number appended. */
function freeName(name: string, stored: readonly Resource[]): string {
	const taken = new Set(stored.map(({ id }) => id?.name));
	for (let at = 1; ; at++) {
		const next = at === 1 ? name : `${name}-${at}`;
		if (!taken.has(next)) {
			return next;
		}
	}
}

function recoveryOf(stored: StoredRecord | undefined): RegistryRecovery {
	return stored?.record.case === "recovery" ? stored.record.value : create(RegistryRecoverySchema);
}

function idOfDeletion(uid: string): ID {
	return idOf(DeletedDeployment, deletedDeploymentName(uid));
}

function deletionOf(resource: Resource): DeletedDeploymentData {
	return decodeShared(DeletedDeployment, resource).data;
}

function deletionRecord(runtime: Runtime, deletion: DeletedDeploymentData): Mutation {
	const id = { ...idOfDeletion(deletion.uid), uid: newUlid(runtime) };
	const resource = resourceOf(DeletedDeployment, { id, data: deletion });
	resource.generation = newUlid(runtime);
	return { op: "put", resource, expectedVersion: "" };
}

async function listStrongly(
	backend: StorageBackend,
	{ type }: ResourceType,
): Promise<readonly Resource[]> {
	const query = { type, tenancy: tenancyOf(), namePrefix: "" };
	return (await backend.list(query, { consistency: "strong" })).resources;
}
