/**
 * A storage that was restored to its past, or whose deployment was deleted, takes part anew: as the
 * successor of the deployment that it was.
 *
 *     successor:  admitted ──establish all that it references anew──▶ established, serves writes
 *                    └── refuses deletions until each other deployment has reported ──▶ deletes
 *     others:     see a successor ──establish anew what they reference there──▶ report
 *
 * Until the successor is established, nobody answers for its predecessor, whose sources therefore stay;
 * from then on the successor does, since all that the predecessor references is its own.
 */
import { Code } from "@connectrpc/connect";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "./constraint-context.ts";
import { readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";
import { deriveReferences } from "./derive-references.ts";
import type { DeploymentInfo } from "./environment.ts";
import { routeTo } from "./holder-query.ts";
import { nameOfKey } from "./resource-key.ts";
import { deployedOf, displayDeployed } from "./shadow.ts";
import { ResourceShadow, shadowOf } from "./shadow-records.ts";
import { responsibleUid } from "./successors.ts";

/**
 * As the successor of a deployment: establishes all outgoing references anew, under the new uid. To be
 * done before the first write; does nothing where it has been done, or there is no predecessor.
 *
 * @throws Refused Unavailable where a deployment can't be reached: call it again.
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
 * Establishes anew what this deployment references at a successor, and reports that.
 *
 * @throws Refused or ConnectError Unavailable where the successor can't be reached: call it again.
 */
export async function establishWithSuccessor(
	context: ConstraintContext,
	successor: DeploymentInfo,
	signal: AbortSignal,
): Promise<void> {
	const { descriptor, environment, guards, limits } = context;
	// A write that is under way, or that lands late, may have established with the predecessor.
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
		.reportEstablished({ route: routeTo(context, successor.uid) }, { timeoutMs: limits.callMs });
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
		signal.throwIfAborted();
		const shadow = shadowOf(resource)?.shadow;
		const has = shadow?.outgoing.some(({ target }) => target !== undefined && concerns(target));
		if (has && shadow?.resource !== undefined) {
			await deriveReferences(context, nameOfKey(shadow.resource), concerns);
		}
	}
}

/**
 * Refuses deletions of a successor until each deployment that is known has reported, disabled ones too:
 * before, its shadows may lack the sources that its predecessor got after the backup.
 *
 * @throws Refused Unavailable, naming those that are waited for.
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

/** A deployment has established with this one what it had established with its predecessor. */
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
