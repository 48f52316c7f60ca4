/**
 * A storage that was restored from a backup, or whose deployment was deleted, registers again: as the
 * successor of its previous deployment.
 *
 *     successor:  admitted ──re-establish all of its references──▶ established, serves writes
 *                    └── refuses deletions until every other deployment has reported ──▶ deletes
 *     others:     see a successor ──re-establish their references to it──▶ report
 *
 * Until the successor is established, no deployment responds for its predecessor, whose sources therefore
 * stay. From then on the successor responds, because it has all references of the predecessor.
 */
import { Code } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	type DeploymentRecord,
	Lifecycle,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Refused } from "@plinth/storage";
import type { Derivation } from "../commit/reference-plan.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { routeTo } from "../protocol/holder-query.ts";
import type { DeploymentInfo, Environment } from "../registry/environment.ts";
import { Deployment } from "../registry/meta-types.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { displayKey, type KeyLike, nameOfKey } from "../shadow/resource-key.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";
import {
	ResourceShadow,
	readShadow,
	type StoredShadow,
	shadowOf,
} from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { claimOwners } from "./claimed-owners.ts";
import { hasGivenUp, readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";
import { predecessorsOf, responsibleUid } from "./successors.ts";

/**
 * Re-establishes all outgoing references of a successor under its new uid. Must complete before the first
 * write. Does nothing if that is done already, or without a predecessor.
 *
 * Another server of the deployment may give up the uid meanwhile. What was established under it counts for nothing then:
 * all of it is established again under the next one.
 *
 * @returns whether the storage still has the uid of this server. If not, it must stop.
 * @throws Refused Unavailable if a deployment can't be reached. Retry.
 */
export async function reestablishOwnReferences(
	context: ConstraintContext,
	signal: AbortSignal,
): Promise<boolean> {
	const { backend, environment, runtime } = context;
	const { uid } = environment.self;
	const hasUid = (record: DeploymentRecord | undefined) =>
		record === undefined ||
		!hasGivenUp(record, uid) ||
		isPlanted("take references for established under another uid");
	const record = await readDeploymentRecord(backend);
	if (!hasUid(record)) {
		return false;
	}
	if (record === undefined || record.predecessorUid === "" || record.established) {
		return true;
	}
	try {
		await revertStates(context);
		await reestablish(context, await storedShadows(context), { reestablish: () => true }, signal);
	} catch (failure) {
		if (hasUid(await readDeploymentRecord(backend))) {
			throw failure;
		}
		return false;
	}
	let isOwn = true;
	await updateDeploymentRecord(backend, runtime, (now) => {
		isOwn = hasUid(now);
		return isOwn ? { ...now, established: true } : undefined;
	});
	return isOwn;
}

/**
 * Takes back what a restore has made untrue:
 *
 * - The checks of deletions that the predecessor has begun. Nothing can be established at a resource while it is CHECKING,
 *   and the controllers, which revert checks, start only once the references are established.
 * - That owners are valid. They may have been deleted since the backup, and nobody reports that again: so the controllers
 *   query all of them.
 */
async function revertStates(context: ConstraintContext): Promise<void> {
	for (const resource of await storedShadows(context)) {
		let stored = shadowOf(resource);
		while (stored !== undefined && (isChecking(stored) || hasValidOwner(stored))) {
			const { name, shadow } = stored;
			const replaced = await replaceShadow(context, stored, {
				...shadow,
				lifecycle: isChecking(stored) ? Lifecycle.ACTIVE : shadow.lifecycle,
				metaOwners: shadow.metaOwners.map((owner) => ({ ...owner, valid: false })),
			});
			// Other deployments already establish references to this one, and ask about its owners.
			const isChanged =
				replaced === "conflict" && !isPlanted("leave states of shadows that change");
			stored = isChanged
				? await readShadow(context.backend, name, { consistency: "strong" })
				: undefined;
		}
	}
}

function isChecking({ shadow }: StoredShadow): boolean {
	return shadow.lifecycle === Lifecycle.CHECKING;
}

function hasValidOwner({ shadow }: StoredShadow): boolean {
	return shadow.metaOwners.some(({ valid }) => valid);
}

/**
 * Re-establishes the references of this deployment to a successor, tells it which of its resources own some of this
 * deployment, and reports that.
 *
 * @throws Refused or ConnectError Unavailable if the successor can't be reached, or another deployment is responsible for
 *   what it has taken over. Retry.
 */
export async function establishWithSuccessor(
	context: ConstraintContext,
	successor: DeploymentInfo,
	signal: AbortSignal,
): Promise<void> {
	const { descriptor, dropped, environment, guards, limits } = context;
	const predecessors = predecessorsOf(environment, successor);
	assertResponsible(environment, successor, predecessors);
	// A write in progress, or a delayed one, may have established its references with a predecessor; one of a server that
	// does not know the successor yet still may. The record fails all of these, and the guards those of servers whose
	// version does not assert it.
	for (const uid of predecessors) {
		await dropped.succeed(uid, successor.uid);
	}
	await guards.changeAll();
	const isThere = (service: string, region: string) =>
		region === successor.region && (service || environment.self.service) === successor.service;
	// What another deployment of the place stores stays there: it need not even respond.
	const concerns = ({ group, region }: KeyLike, deploymentUid: string) => {
		assertResponsible(environment, successor, predecessors);
		const service = descriptor.serviceOfGroup(group);
		if (service !== undefined && !isThere(service, region)) {
			return false;
		}
		const isNowhere = service !== undefined && deploymentUid === "";
		return isNowhere || mayHaveSucceeded(environment, successor, deploymentUid, region);
	};
	const shadows = await storedShadows(context);
	await reestablish(context, shadows, { reestablish: concerns, successor }, signal);
	if (!isPlanted("report to a successor that lacks holders of its owners")) {
		await claimOwners(context, shadows, successor, signal, () =>
			assertResponsible(environment, successor, predecessors),
		);
	}
	await environment
		.client(successor.uid)
		.reportEstablished(
			{ route: routeTo(context, successor.uid) },
			{ timeoutMs: limits.callTimeoutMs },
		);
}

/**
 * Invariant: what concerns a successor is decided while it is responsible for all that it has taken over. While another
 * deployment is, nothing seems to concern it, though all of that does again once the other one is deleted.
 *
 * @throws Refused Unavailable if another deployment is.
 */
function assertResponsible(
	environment: Environment,
	successor: DeploymentInfo,
	predecessors: Iterable<string>,
): void {
	for (const uid of predecessors) {
		const responsible = responsibleUid(environment, uid);
		if (responsible !== successor.uid && !isPlanted("report to one of several successors")) {
			throw new Refused(
				Code.Unavailable,
				`nothing was reported to deployment ${successor.uid}: deployment ${responsible} has taken over from deployment ${uid} too`,
			);
		}
	}
}

/**
 * Whether a deployment is the successor of one that a reference records, or may be: several deployments that followed each
 * other can't be linked if one of them is not known any longer.
 */
function mayHaveSucceeded(
	environment: Environment,
	successor: DeploymentInfo,
	deploymentUid: string,
	region: string,
): boolean {
	const responsible = responsibleUid(environment, deploymentUid);
	return (
		responsible === successor.uid ||
		(deploymentUid !== "" &&
			region === successor.region &&
			environment.byUid(responsible) === undefined)
	);
}

async function reestablish(
	context: ConstraintContext,
	shadows: readonly Resource[],
	derivation: Derivation,
	signal: AbortSignal,
): Promise<void> {
	for (const resource of shadows) {
		await context.runtime.scheduler.turn();
		signal.throwIfAborted();
		const shadow = shadowOf(resource)?.shadow;
		const has = shadow?.outgoing.some(
			({ target, deploymentUid }) => target && derivation.reestablish(target, deploymentUid),
		);
		if (has && shadow?.resource !== undefined) {
			const derived = await deriveReferences(context, nameOfKey(shadow.resource), derivation);
			assertEstablished(context, derived, derivation);
		}
	}
}

/**
 * Invariant: what is reported to a successor is recorded with it, or as missing.
 *
 * @throws Refused Unavailable if a reference is still recorded with a predecessor.
 */
function assertEstablished(
	{ environment }: ConstraintContext,
	shadow: Shadow | undefined,
	{ reestablish, successor }: Derivation,
): void {
	const left = shadow?.outgoing.find(
		({ target, targetUid, deploymentUid }) =>
			successor !== undefined &&
			targetUid !== "" &&
			deploymentUid !== successor.uid &&
			responsibleUid(environment, deploymentUid) === successor.uid &&
			target !== undefined &&
			reestablish(target, deploymentUid),
	);
	if (shadow?.resource !== undefined && left?.target !== undefined) {
		const problem = `${displayKey(shadow.resource)} still references ${displayKey(left.target)} in deployment ${left.deploymentUid}`;
		throw new Refused(
			Code.Unavailable,
			`nothing was reported to deployment ${successor?.uid}, which has taken over: ${problem}`,
		);
	}
}

async function storedShadows({ backend }: ConstraintContext): Promise<readonly Resource[]> {
	const { resources } = await backend.list(
		{
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "s-",
		},
		{ consistency: "strong" },
	);
	return resources;
}

/**
 * Refuses deletions of a successor until every known deployment has reported, including disabled ones: until
 * then, its shadows may lack sources that its predecessor received after the backup. A meta deployment may delete the
 * Deployment of one that has not: it may not exist any longer, and would be waited for.
 *
 * @throws Refused Unavailable, naming the deployments that have not reported, or if some may not be known.
 */
export async function assertMayDelete(
	context: ConstraintContext,
	id: Pick<ID, "type" | "uid"> | undefined,
): Promise<void> {
	const { environment, backend } = context;
	if (environment.self.predecessorUid === "") {
		return;
	}
	const record = await readDeploymentRecord(backend);
	if (isDeployment(id) && !record?.establishedBy.includes(id?.uid ?? "")) {
		return;
	}
	if (environment.isComplete === false) {
		throw new Refused(
			Code.Unavailable,
			"nothing can be deleted yet: this deployment has taken over from another one, and some meta deployment can't be reached, which may know of others that reference its resources",
		);
	}
	const missing = environment
		.deployments()
		.filter(
			({ uid }) =>
				uid !== environment.self.uid &&
				responsibleUid(environment, uid) === uid &&
				!record?.establishedBy.includes(uid),
		);
	if (missing.length > 0) {
		const names = missing.map(
			(each) => `${displayDeployed(deployedOf(each))} (Deployment ${each.name}, uid ${each.uid})`,
		);
		throw new Refused(
			Code.Unavailable,
			`nothing can be deleted yet: this deployment has taken over from another one, and waits for ${names.join(", ")} to establish their references with it. If one of them no longer exists, delete its Deployment`,
		);
	}
}

function isDeployment(id: Pick<ID, "type"> | undefined): boolean {
	const { group, kind } = Deployment.type;
	return id?.type?.group === group && id.type.kind === kind;
}

/**
 * Records that a deployment has re-established its references to this successor.
 *
 * @throws Refused Unavailable if another server has given up the uid to which they were established.
 */
export function recordEstablished(
	{ backend, environment, runtime }: Pick<ConstraintContext, "backend" | "environment" | "runtime">,
	uid: string,
): Promise<void> {
	const { self } = environment;
	return updateDeploymentRecord(backend, runtime, (record) => {
		const isLate = hasGivenUp(record, self.uid);
		if (isLate && !isPlanted("take a report to a former uid for one to the next")) {
			throw new Refused(
				Code.Unavailable,
				`deployment ${self.uid} was deleted: references must be established with its successor`,
			);
		}
		return record.establishedBy.includes(uid)
			? undefined
			: { ...record, establishedBy: [...record.establishedBy, uid] };
	});
}
