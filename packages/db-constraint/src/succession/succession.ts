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
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { routeTo } from "../protocol/holder-query.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";
import { ResourceShadow, shadowOf } from "../shadow/shadow-records.ts";
import { readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";
import { responsibleUid } from "./successors.ts";

/**
 * Re-establishes all outgoing references of a successor under its new uid. Must complete before the first
 * write. Does nothing if that is done already, or without a predecessor.
 *
 * @throws Refused Unavailable if a deployment can't be reached. Retry.
 */
export async function reestablishOwnReferences(
	context: ConstraintContext,
	signal: AbortSignal,
): Promise<void> {
	const record = await readDeploymentRecord(context.backend);
	if (record === undefined || record.predecessorUid === "" || record.established) {
		return;
	}
	await reestablish(context, () => true, signal);
	await updateDeploymentRecord(context.backend, context.runtime, (now) => ({
		...now,
		established: true,
	}));
}

/**
 * Re-establishes the references of this deployment to a successor, and reports that.
 *
 * @throws Refused or ConnectError Unavailable if the successor can't be reached. Retry.
 */
export async function establishWithSuccessor(
	context: ConstraintContext,
	successor: DeploymentInfo,
	signal: AbortSignal,
): Promise<void> {
	const { descriptor, environment, guards, limits } = context;
	// A write in progress, or a delayed one, may have established its references with the predecessor.
	await guards.changeAll();
	await reestablish(
		context,
		({ group, region }) => {
			const service = descriptor.serviceOfGroup(group);
			return (
				region === successor.region &&
				(service === "" ? environment.self.service : service) === successor.service
			);
		},
		signal,
	);
	await environment
		.client(successor.uid)
		.reportEstablished(
			{ route: routeTo(context, successor.uid) },
			{ timeoutMs: limits.callTimeoutMs },
		);
}

async function reestablish(
	context: ConstraintContext,
	concerns: (target: { readonly group: string; readonly region: string }) => boolean,
	signal: AbortSignal,
): Promise<void> {
	const { resources } = await context.backend.list(
		{
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "s-",
		},
		{ consistency: "strong" },
	);
	for (const resource of resources) {
		await context.runtime.scheduler.turn();
		signal.throwIfAborted();
		const shadow = shadowOf(resource)?.shadow;
		const has = shadow?.outgoing.some(({ target }) => target !== undefined && concerns(target));
		if (has && shadow?.resource !== undefined) {
			await deriveReferences(context, nameOfKey(shadow.resource), concerns);
		}
	}
}

/**
 * Refuses deletions of a successor until every known deployment has reported, including disabled ones: until
 * then, its shadows may lack sources that its predecessor received after the backup.
 *
 * @throws Refused Unavailable, naming the deployments that have not reported.
 */
export async function assertMayDelete(context: ConstraintContext): Promise<void> {
	const { environment, backend } = context;
	if (environment.self.predecessorUid === "") {
		return;
	}
	const record = await readDeploymentRecord(backend);
	const missing = environment
		.deployments()
		.filter(
			({ uid }) =>
				uid !== environment.self.uid &&
				responsibleUid(environment, uid) === uid &&
				!record?.establishedBy.includes(uid),
		);
	if (missing.length > 0) {
		const names = missing.map((each) => displayDeployed(deployedOf(each))).join(", ");
		throw new Refused(
			Code.Unavailable,
			`nothing can be deleted yet: this deployment has taken over from another one, and waits for ${names} to establish their references with it`,
		);
	}
}

/** Records that a deployment has re-established its references to this successor. */
export function recordEstablished(
	{ backend, runtime }: Pick<ConstraintContext, "backend" | "runtime">,
	uid: string,
): Promise<void> {
	return updateDeploymentRecord(backend, runtime, (record) =>
		record.establishedBy.includes(uid)
			? undefined
			: { ...record, establishedBy: [...record.establishedBy, uid] },
	);
}
