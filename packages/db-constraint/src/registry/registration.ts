import { create, equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	type Deployment as DeploymentData,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, type ResourceType, tenancyOf, typeOf } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { takenOverBy } from "../protocol/dropped-deployments.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { describeService } from "./describe-service.ts";
import { takenOver } from "./environment.ts";
import {
	anyOf,
	createResource,
	readStrongly,
	replaceData,
	strongly,
	unavailable,
} from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import {
	giveUpUid,
	type IdentityOptions,
	keepUid,
	type OwnIdentity,
	openIdentity,
} from "./own-identity.ts";
import { giveBack, type RegistryReport, withDeployment } from "./registry-report.ts";
import { deploymentOf, metaOf, type RegisteredDeployment, recoveringOf } from "./registry-view.ts";
import { deleteUnused, isUnused } from "./unused-registrations.ts";

/** Options of `register`. */
export interface RegistrationOptions {
	readonly deployment: DeploymentConfiguration;
	readonly descriptor: ServiceDescriptor;
	readonly identity: IdentityOptions;
	/** The servers of each meta deployment, in the order of preference. */
	readonly metas: readonly (readonly MetaSource[])[];
	/** The uid under which it takes writes already, if it does. Then it can't register under another one. */
	readonly servedUid: string | undefined;
	/** Whether a server of this deployment runs at an address that was registered before. */
	readonly isRunningAt: (address: string) => boolean;
	/** The deployments that are known already, also where a meta deployment does not respond now. */
	readonly known: () => Iterable<RegisteredDeployment>;
	/** What is known of the registry of a meta deployment, by its servers. Rejects with a StorageError. */
	readonly reportTo: (servers: readonly MetaSource[]) => Promise<RegistryReport>;
	readonly logger: Logger;
	/** The timeout of one call, in milliseconds. */
	readonly callTimeoutMs: number;
}

/** A valid registration. */
export interface Registration {
	readonly registered: RegisteredDeployment;
	/** The meta deployment that keeps it. */
	readonly registrar: MetaSource;
}

/** The deployment was deleted while it took writes: its servers must stop, and register again with their next start. */
export class DeploymentDeleted extends Error {}

/** Another storage has registered as the successor of the deployment: this one must not serve under its uid. */
export class DeploymentSucceeded extends Error {
	readonly uid: string;
	readonly successorUid: string;

	constructor(uid: string, successorUid: string) {
		super(takenOverBy(uid, successorUid));
		this.uid = uid;
		this.successorUid = successorUid;
	}
}

/** The Deployments of this service and region at one meta deployment, without those that it has again though deleted. */
interface Found {
	readonly meta: MetaSource;
	/** All servers of the meta deployment. */
	readonly servers: readonly MetaSource[];
	readonly own: readonly RegisteredDeployment[];
	/** Its own Deployment, if it was restored and is not complete. */
	readonly recovering: RegisteredDeployment | undefined;
	/** Its own Deployment; `undefined` if it has none. */
	readonly itself: RegisteredDeployment | undefined;
}

/**
 * Registers a deployment, or finds its existing registration:
 *
 *     own record ─┬─ not the uid that is served ──────────────▶ refused
 *                 ├─ uid that another storage has succeeded ──▶ refused, unless it was deleted and that is disabled
 *                 ├─ uid that a meta deployment has ──────────▶ keep it, with the current address
 *                 ├─ uid that none has, and none has deleted ─▶ give it back ──▶ keep it
 *                 ├─ uid that was deleted ────────────────────▶ give it up ─┐
 *                 └─ none ─────────────────────────────────────────────────┴▶ admit
 *     admit: the registration of an earlier start of the same storage, else a new Deployment at the first
 *     meta deployment that responds, which names the previous uid
 *
 * @throws ConnectError Unavailable if too few meta deployments respond to decide, or none that responds can take the uid
 *   back. Retry. DeploymentDeleted instead of giving up the uid, if it is serving, or if another server has given it up.
 *   DeploymentSucceeded if another storage has taken over.
 */
export function register(options: RegistrationOptions): Promise<Registration> {
	return registerOnce(options, false);
}

/** @param isGivenBack - whether a meta deployment that has forgotten the uid has got it back. */
async function registerOnce(
	options: RegistrationOptions,
	isGivenBack: boolean,
): Promise<Registration> {
	const identity = await openIdentity(options.identity);
	if (isOtherServed(options, identity)) {
		throw new DeploymentDeleted("another server of this deployment has given up its uid");
	}
	const { found, missing } = await listRegistrations(options);
	const successor = found
		.flatMap(({ own }) => own)
		.find(
			(each) =>
				takenOver(each).includes(identity.uid) &&
				each.storageIncarnation !== identity.storageIncarnation,
		);
	const registration = findRegistration(identity, found);
	// An old Deployment is deleted after a restore, too: that alone does not say that its storage is to take over again.
	if (successor !== undefined && (registration !== undefined || !successor.disabled)) {
		throw new DeploymentSucceeded(identity.uid, successor.uid);
	}
	if (registration !== undefined) {
		return refresh(options, await keep(options, registration, found));
	}
	if (identity.uid !== "") {
		const mayBeForgotten =
			!isGivenBack && !isPlanted("give up a uid that a restored registry lacks");
		if (mayBeForgotten && !(await hasDeletionRecord(options, identity.uid))) {
			if (await giveBackOwn(options, identity, found, missing)) {
				return registerOnce(options, true);
			}
		}
		const isDeleted =
			((isPlanted("give up a uid that a restored registry lacks") ||
				isPlanted("give up a uid that an empty registry lacks")) &&
				missing.length === 0) ||
			(await isDeletedAt(options, identity.uid));
		if (!isDeleted) {
			throw unavailable(unknownTo(identity, missing));
		}
		if (options.servedUid !== undefined) {
			throw new DeploymentDeleted(`deployment ${identity.uid} was deleted`);
		}
		options.logger.warn(
			{ uid: identity.uid },
			"the deployment of this storage was deleted: registering a new one",
		);
		const without = await giveUpUid(options.identity, identity.uid);
		return admit(options, without, found, missing);
	}
	return admit(options, identity, found, missing);
}

/** Whether it takes writes under a uid that its storage does not have any longer. */
function isOtherServed({ servedUid }: RegistrationOptions, { uid }: OwnIdentity): boolean {
	return (
		servedUid !== undefined &&
		uid !== servedUid &&
		!isPlanted("register under another uid than the one that is served")
	);
}

function unknownTo({ uid }: OwnIdentity, missing: readonly string[]): string {
	return missing.length > 0
		? `no reachable meta deployment knows deployment ${uid}, and these are unreachable: ${missing.join(", ")}`
		: `no meta deployment knows deployment ${uid}, and none has deleted it: one that was started with an empty storage takes it back once it has registered itself`;
}

/**
 * Registers this deployment again under its own uid, with a meta deployment that has forgotten it in a restore. That may
 * only be the one with which it has registered: each deletion leaves a record, so one that is complete may have lost it too.
 *
 * @returns whether there is one that takes it back.
 * @throws ConnectError Unavailable if that can't be determined or reached. StorageError if what is known can't be read.
 */
async function giveBackOwn(
	options: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
	missing: readonly string[],
): Promise<boolean> {
	const { deployment, reportTo, callTimeoutMs } = options;
	const { uid, predecessorUid, storageIncarnation, established } = identity;
	const { service, region, version, address } = deployment;
	const isRestored = found.some(({ recovering }) => recovering !== undefined);
	const others = found.flatMap(({ recovering, itself, servers }) => {
		const to = isRestored ? recovering : itself;
		const isOther = servers.some(({ mixin }) => mixin !== undefined);
		return to === undefined || !isOther ? [] : [{ to, servers }];
	});
	const restored = await Promise.all(
		others.map(async (each) => ({ ...each, report: await reportTo(each.servers) })),
	);
	const registrar = restored.find(({ report }) =>
		report.deployments.some(({ id }) => id?.uid === uid),
	);
	if (registrar === undefined && missing.length > 0) {
		throw unavailable(unknownTo(identity, missing));
	}
	const [meta] = registrar === undefined ? restored : [registrar];
	if (meta !== undefined) {
		const own: RegisteredDeployment = {
			...{ uid, name: nameOf(deployment), service, region, version, address },
			...{ disabled: false, wantedVersion: "", recovering: false },
			...{ predecessorUid, storageIncarnation, established },
			otherPredecessorUids: relatedUids(options, identity, found),
		};
		const report = withDeployment(meta.report, own);
		await giveBack(meta.servers, meta.to, own, report, callTimeoutMs);
	}
	return meta !== undefined;
}

/** Whether some meta deployment that responds has the record of a deletion. Never rejects. */
async function hasDeletionRecord(where: DeletionRecords, uid: string): Promise<boolean> {
	return (await readDeletionRecords(where, uid)).some(isRecord);
}

/** Where the records of deletions are read. */
type DeletionRecords = Pick<RegistrationOptions, "metas" | "callTimeoutMs">;

/** Reads the record of a deletion at all meta deployments strongly, each at any of its servers. */
function readDeletionRecords({ metas, callTimeoutMs }: DeletionRecords, uid: string) {
	const name = deletedDeploymentName(uid);
	return Promise.allSettled(
		metas.map((servers) =>
			anyOf(servers, ({ client }) => readStrongly(client, DeletedDeployment, name, callTimeoutMs)),
		),
	);
}

function isRecord(result: PromiseSettledResult<Resource | undefined>): boolean {
	return result.status === "fulfilled" && result.value !== undefined;
}

/** Whether any meta deployment has the record of a deletion. Reads all of them strongly, each at any of its servers. */
export async function isDeletedAt(where: DeletionRecords, uid: string): Promise<boolean> {
	const results = await readDeletionRecords(where, uid);
	if (results.some(isRecord)) {
		return true;
	}
	const failed = results.find((each) => each.status === "rejected");
	if (failed !== undefined) {
		throw ConnectError.from(failed.reason);
	}
	if (results.length === 0) {
		throw unavailable("no meta deployment is known");
	}
	return false;
}

/** Options of `updateDeployment`. */
export interface UpdateOptions {
	/** Whether it is written also if the fields have these values already. Default: no. */
	readonly always?: boolean;
	/** Called between the read of the Deployment and each attempt to write it: nothing is written if it rejects. */
	readonly before?: () => Promise<void>;
}

/**
 * Updates fields of the Deployment, and preserves concurrent changes of other fields.
 *
 * @throws ConnectError NotFound if it no longer exists, even if another one has its name.
 */
export async function updateDeployment(
	{ registrar, registered: { name, uid } }: Registration,
	fields: Partial<Pick<DeploymentData, "address" | "currentVersion" | "established">>,
	callTimeoutMs: number,
	{ always = false, before }: UpdateOptions = {},
): Promise<RegisteredDeployment> {
	for (;;) {
		const stored = await readStrongly(registrar.client, Deployment, name, callTimeoutMs);
		if (stored?.id?.uid !== uid) {
			throw new ConnectError(
				`${registrar.address} has no Deployment ${name} (${uid})`,
				Code.NotFound,
			);
		}
		const { data } = decodeShared(Deployment, stored);
		const next = { ...data, ...fields };
		if (!always && equals(DeploymentSchema, next, data)) {
			return deploymentOf(stored);
		}
		await before?.();
		try {
			const written = await replaceData(registrar.client, Deployment, stored, next, callTimeoutMs);
			return deploymentOf(written);
		} catch (failure) {
			if (ConnectError.from(failure).code !== Code.Aborted) {
				throw failure;
			}
		}
	}
}

async function listRegistrations({
	metas,
	callTimeoutMs,
	deployment,
}: RegistrationOptions): Promise<{ found: readonly Found[]; missing: readonly string[] }> {
	const found: Found[] = [];
	const missing: string[] = [];
	const listAt = async (meta: MetaSource): Promise<Omit<Found, "servers">> => {
		const list = ({ type }: ResourceType) =>
			meta.client.list(
				{ type: typeOf(type), tenancy: tenancyOf() },
				{ headers: strongly, timeoutMs: callTimeoutMs },
			);
		const [deployments, deletions] = await Promise.all([list(Deployment), list(DeletedDeployment)]);
		const deleted = new Set(
			deletions.resources.map((each) => decodeShared(DeletedDeployment, each).data.uid),
		);
		const all = deployments.resources.map(deploymentOf);
		const own = all.filter(
			({ service, region, uid }) =>
				service === deployment.service && region === deployment.region && !deleted.has(uid),
		);
		return { meta, own, recovering: recoveringOf(all), itself: metaOf(all) };
	};
	await Promise.all(
		metas.map(async (servers) => {
			try {
				found.push({ ...(await anyOf(servers, listAt)), servers });
			} catch (failure) {
				const addresses = servers.map(({ address }) => address).join(", ");
				missing.push(`${addresses} (${ConnectError.from(failure).rawMessage})`);
			}
		}),
	);
	const order = (meta: MetaSource) => metas.findIndex((servers) => servers.includes(meta));
	return { found: found.sort((a, b) => order(a.meta) - order(b.meta)), missing };
}

/** The registration with the recorded uid; without a uid, the last one of the same storage. */
function findRegistration(
	identity: OwnIdentity,
	found: readonly Found[],
): Registration | undefined {
	for (const { meta, own } of found) {
		for (const registered of own) {
			const isOwn =
				identity.uid === "" ? isOfStorage(identity, registered) : registered.uid === identity.uid;
			if (isOwn) {
				return { registered, registrar: meta };
			}
		}
	}
	return undefined;
}

/** Describes the service, and registers the present address unless a server runs at the registered one. */
export async function refresh(
	{
		deployment,
		descriptor,
		isRunningAt,
		callTimeoutMs,
	}: Pick<RegistrationOptions, "deployment" | "descriptor" | "isRunningAt" | "callTimeoutMs">,
	registration: Registration,
): Promise<Registration> {
	const { registrar } = registration;
	await describeService(registrar, deployment, descriptor, callTimeoutMs);
	const { address } = deployment;
	if (isRunningAt(registration.registered.address)) {
		return registration;
	}
	return {
		registrar,
		registered: await updateDeployment(registration, { address }, callTimeoutMs),
	};
}

async function admit(
	options: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
	missing: readonly string[],
): Promise<Registration> {
	const { deployment, descriptor, callTimeoutMs, logger } = options;
	const registrar = found[0]?.meta;
	if (registrar === undefined) {
		throw unavailable(`no meta deployment is reachable: ${missing.join(", ") || "none is known"}`);
	}
	const { name, taken } = await freeName(registrar, nameOf(deployment), identity, callTimeoutMs);
	if (taken !== undefined) {
		return refresh(options, await keep(options, { registered: taken, registrar }, found));
	}
	await describeService(registrar, deployment, descriptor, callTimeoutMs);
	const { service, region, version, address } = deployment;
	const data = create(DeploymentSchema, {
		service,
		region,
		address,
		currentVersion: version,
		predecessorUid: identity.predecessorUid,
		otherPredecessorUids: relatedUids(options, identity, found),
		storageIncarnation: identity.storageIncarnation,
	});
	const created = await createResource(registrar.client, Deployment, name, data, callTimeoutMs);
	if (created === undefined) {
		throw unavailable(`another server registered ${name} at the same time`);
	}
	const registration = await keep(options, { registered: deploymentOf(created), registrar }, found);
	const { uid } = registration.registered;
	logger.info({ deployment: name, uid, meta: registrar.address }, "registered the deployment");
	warnOfOthers(options, identity, found);
	return registration;
}

/**
 * The known deployments of this place that are related to the former ones of this storage by successions: other restores of
 * a backup of the same storage. The new deployment takes them over too, since none of them names it, and one that no longer
 * runs would be waited for.
 */
function relatedUids(
	{ deployment: { service, region }, known }: RegistrationOptions,
	{ uid, predecessorUid, formerUids, storageIncarnation }: OwnIdentity,
	found: readonly Found[],
): string[] {
	const former = [...formerUids, ...(predecessorUid === "" ? [] : [predecessorUid])];
	const inPlace = [...known()].filter((each) => each.service === service && each.region === region);
	const others = [...found.flatMap(({ own }) => own), ...inPlace].filter(
		(each) => each.storageIncarnation !== storageIncarnation || former.includes(each.uid),
	);
	const related = new Set(former);
	for (let before = -1; before < related.size; ) {
		before = related.size;
		for (const each of others) {
			const uids = [each.uid, ...takenOver(each)];
			if (uids.some((uid) => related.has(uid))) {
				for (const uid of uids) {
					related.add(uid);
				}
			}
		}
	}
	related.delete(predecessorUid);
	related.delete(uid);
	return [...related].sort();
}

/** A server that is started with the wrong storage registers as another deployment of the same place. */
function warnOfOthers(
	options: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
): void {
	const { deployment, logger } = options;
	const { service, region } = deployment;
	const all = found.flatMap(({ own }) => own);
	const superseded = new Set(all.flatMap(takenOver));
	const related = new Set([identity.predecessorUid, ...relatedUids(options, identity, found)]);
	const others = all.filter(
		(each) => !related.has(each.uid) && !superseded.has(each.uid) && !isOfStorage(identity, each),
	);
	if (others.length > 0) {
		logger.warn(
			{ others: others.map(({ name, uid }) => `${name} (${uid})`) },
			`${service} in ${region} has another deployment already, whose storage is not the one of this server: if it should have that storage, stop this server, correct its configuration, and delete the Deployment that it has registered`,
		);
	}
}

/**
 * Records the uid of a registration.
 *
 * @throws ConnectError Unavailable if another server of this storage has recorded or given up a uid
 *   concurrently.
 */
async function keep(
	options: RegistrationOptions,
	taken: Registration,
	found: readonly Found[],
): Promise<Registration> {
	const identity = await keepUid(options.identity, taken.registered.uid);
	if (identity.uid !== taken.registered.uid) {
		const uid = identity.uid || "another deployment";
		throw unavailable(`another server of this storage registers it as ${uid} at the same time`);
	}
	await removeDuplicates(options, identity, found);
	return taken;
}

/**
 * Deletes the registrations of other starts of the same storage whose uid was not recorded. Those that can't be deleted now,
 * or arrive later, are deleted while this server runs.
 */
async function removeDuplicates(
	options: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
): Promise<void> {
	for (const { meta, own } of found) {
		for (const each of own.filter((registered) => isUnused(identity, registered))) {
			const { name, uid } = each;
			try {
				await deleteUnused(meta, each, options);
			} catch (err) {
				options.logger.warn({ err, deployment: name, uid }, "this storage is registered twice");
			}
		}
	}
}

/**
 * The name, or the first free one with a number appended. Stops at a name that another server of the same
 * storage has just registered: both are one deployment.
 */
async function freeName(
	registrar: MetaSource,
	name: string,
	identity: OwnIdentity,
	callTimeoutMs: number,
): Promise<{ readonly name: string; readonly taken?: RegisteredDeployment }> {
	for (let at = 1; ; at++) {
		const next = at === 1 ? name : `${name}-${at}`;
		const stored = await readStrongly(registrar.client, Deployment, next, callTimeoutMs);
		if (stored === undefined) {
			return { name: next };
		}
		const taken = deploymentOf(stored);
		if (isOfStorage(identity, taken)) {
			return { name: next, taken };
		}
	}
}

/** Whether the same storage has registered it, since it has given up the uid before. */
function isOfStorage(
	{ storageIncarnation, predecessorUid }: OwnIdentity,
	registered: RegisteredDeployment,
): boolean {
	return (
		registered.storageIncarnation === storageIncarnation &&
		registered.predecessorUid === predecessorUid
	);
}

function nameOf({ name, service, region }: DeploymentConfiguration): string {
	return name ?? `${service}-${region}`;
}
