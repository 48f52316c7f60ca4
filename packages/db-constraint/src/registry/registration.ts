import { create, equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Deployment as DeploymentData,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, idOf, tenancyOf, typeOf } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import { takenOverBy } from "../protocol/dropped-deployments.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { describeService } from "./describe-service.ts";
import { takenOver } from "./environment.ts";
import { createResource, readStrongly, replaceData, strongly, unavailable } from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import {
	giveUpUid,
	type IdentityOptions,
	keepUid,
	type OwnIdentity,
	openIdentity,
} from "./own-identity.ts";
import { deploymentOf, type RegisteredDeployment } from "./registry-view.ts";

/** Options of `register`. */
export interface RegistrationOptions {
	readonly deployment: DeploymentConfiguration;
	readonly descriptor: ServiceDescriptor;
	readonly identity: IdentityOptions;
	/** The servers of each meta deployment, in the order of preference. */
	readonly metas: readonly (readonly MetaSource[])[];
	/** Whether it takes writes under its recorded uid already. Then it can't register under another one. */
	readonly isServing: boolean;
	/** Whether a server of this deployment runs at an address that was registered before. */
	readonly isRunningAt: (address: string) => boolean;
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

/** The Deployments of this service and region at one meta deployment. */
interface Found {
	readonly meta: MetaSource;
	readonly own: readonly RegisteredDeployment[];
}

/**
 * Registers a deployment, or finds its existing registration:
 *
 *     own record ─┬─ uid that another storage has succeeded ──▶ refused, unless it was deleted and that is disabled
 *                 ├─ uid that a meta deployment has ──────────▶ keep it, with the current address
 *                 ├─ uid that was deleted, or that none has ──▶ give it up ─┐
 *                 └─ none ─────────────────────────────────────────────────┴▶ admit
 *     admit: the registration of an earlier start of the same storage, else a new Deployment at the first
 *     meta deployment that responds, which names the previous uid
 *
 * @throws ConnectError Unavailable if too few meta deployments respond to decide. Retry. DeploymentDeleted instead of
 *   giving up the uid, if it is serving. DeploymentSucceeded if another storage has taken over.
 */
export async function register(options: RegistrationOptions): Promise<Registration> {
	const identity = await openIdentity(options.identity);
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
		if (missing.length > 0 && !(await isDeletedAt(options, identity.uid))) {
			throw unavailable(
				`no reachable meta deployment knows deployment ${identity.uid}, and these are unreachable: ${missing.join(", ")}`,
			);
		}
		if (options.isServing) {
			throw new DeploymentDeleted(`deployment ${identity.uid} was deleted`);
		}
		options.logger.warn(
			{ uid: identity.uid },
			"the deployment of this storage was deleted: registering a new one",
		);
		const without = await giveUpUid(options.identity, identity.uid);
		return admit(options, without, found, missing);
	}
	if (options.isServing) {
		throw new DeploymentDeleted("another server of this deployment has given up its uid");
	}
	return admit(options, identity, found, missing);
}

/** Whether any meta deployment has the record of a deletion. Reads all of them strongly, each at any of its servers. */
export async function isDeletedAt(
	{ metas, callTimeoutMs }: Pick<RegistrationOptions, "metas" | "callTimeoutMs">,
	uid: string,
): Promise<boolean> {
	const results = await Promise.allSettled(
		metas.map((servers) =>
			anyOf(servers, ({ client }) =>
				readStrongly(client, DeletedDeployment, deletedDeploymentName(uid), callTimeoutMs),
			),
		),
	);
	if (results.some((each) => each.status === "fulfilled" && each.value !== undefined)) {
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

/**
 * Updates fields of the Deployment, and preserves concurrent changes of other fields.
 *
 * @throws ConnectError NotFound if it no longer exists, even if another one has its name.
 */
export async function updateDeployment(
	{ registrar, registered: { name, uid } }: Registration,
	fields: Partial<Pick<DeploymentData, "address" | "currentVersion" | "established">>,
	callTimeoutMs: number,
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
		if (equals(DeploymentSchema, next, data)) {
			return deploymentOf(stored);
		}
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
	const listAt = async (meta: MetaSource): Promise<Found> => {
		const { resources } = await meta.client.list(
			{ type: typeOf(Deployment.type), tenancy: tenancyOf() },
			{ headers: strongly, timeoutMs: callTimeoutMs },
		);
		const own = resources
			.map(deploymentOf)
			.filter(
				({ service, region }) => service === deployment.service && region === deployment.region,
			);
		return { meta, own };
	};
	await Promise.all(
		metas.map(async (servers) => {
			try {
				found.push(await anyOf(servers, listAt));
			} catch (failure) {
				const addresses = servers.map(({ address }) => address).join(", ");
				missing.push(`${addresses} (${ConnectError.from(failure).rawMessage})`);
			}
		}),
	);
	const order = (meta: MetaSource) => metas.findIndex((servers) => servers.includes(meta));
	return { found: found.sort((a, b) => order(a.meta) - order(b.meta)), missing };
}

/** The response of the first server of a meta deployment that responds, in their order. @throws the last failure. */
export async function anyOf<T>(
	servers: readonly MetaSource[],
	call: (server: MetaSource) => Promise<T>,
): Promise<T> {
	let failure: unknown = unavailable("no meta deployment is known");
	for (const server of servers) {
		try {
			return await call(server);
		} catch (error) {
			failure = error;
		}
	}
	throw failure;
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

async function refresh(
	{ deployment, descriptor, isRunningAt, callTimeoutMs }: RegistrationOptions,
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
		otherPredecessorUids: relatedUids(identity, found),
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
 * The known deployments of this place that are related to the predecessor by successions: other restores of a backup of
 * the same storage. The new deployment takes them over too, since none of them names it, and one that no longer runs
 * would be waited for.
 */
function relatedUids({ predecessorUid, storageIncarnation }: OwnIdentity, found: readonly Found[]) {
	const others = found
		.flatMap(({ own }) => own)
		.filter((each) => each.storageIncarnation !== storageIncarnation);
	const related = new Set(predecessorUid === "" ? [] : [predecessorUid]);
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
	return [...related].sort();
}

/** A server that is started with the wrong storage registers as another deployment of the same place. */
function warnOfOthers(
	{ deployment: { service, region }, logger }: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
): void {
	const all = found.flatMap(({ own }) => own);
	const superseded = new Set(all.flatMap(takenOver));
	const related = new Set([identity.predecessorUid, ...relatedUids(identity, found)]);
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
 * Deletes the duplicate registrations of other starts of the same storage whose uid was not recorded: no
 * server has ever used them, but other deployments would look for this deployment there. Those that can't
 * be deleted now, or are not visible yet, are deleted by the next start.
 */
async function removeDuplicates(
	{ callTimeoutMs, logger }: RegistrationOptions,
	identity: OwnIdentity,
	found: readonly Found[],
): Promise<void> {
	for (const { meta, own } of found) {
		for (const each of own) {
			const { name, uid, predecessorUid } = each;
			if (
				uid === identity.uid ||
				predecessorUid !== identity.predecessorUid ||
				!isOfStorage(identity, each)
			) {
				continue;
			}
			try {
				const id = { ...idOf(Deployment, name), uid };
				await meta.client.delete({ id }, { timeoutMs: callTimeoutMs });
				logger.warn(
					{ deployment: name, uid },
					"this storage was registered twice: deleted the duplicate",
				);
			} catch (err) {
				logger.warn({ err, deployment: name, uid }, "this storage is registered twice");
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

/** Whether the same storage has registered it, and has not given it up since. */
function isOfStorage(
	{ storageIncarnation, predecessorUid }: OwnIdentity,
	registered: RegisteredDeployment,
): boolean {
	return registered.storageIncarnation === storageIncarnation && registered.uid !== predecessorUid;
}

function nameOf({ name, service, region }: DeploymentConfiguration): string {
	return name ?? `${service}-${region}`;
}
