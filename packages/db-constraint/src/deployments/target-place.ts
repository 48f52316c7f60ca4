import type { MetaOwner, OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { ownerDeployment } from "../controller/owner-deployments.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { responsibleUid } from "../succession/successors.ts";

/** Where the target of a reference is, or would be. */
export interface TargetPlace {
	/** The deployment that is responsible for it now; empty for a missing one whose service has none in the region. */
	readonly uid: string;
	readonly service: string;
	readonly region: string;
}

/**
 * Where the target of a reference is, or would be. A missing one is looked up by the service and region of its type. Only
 * if its service is not imported, the deployment counts that has said that it is missing.
 */
export function targetPlace(
	{ descriptor, environment }: Pick<ConstraintContext, "descriptor" | "environment">,
	{ target, targetUid, deploymentUid, missing }: OutgoingReference,
): TargetPlace {
	const group = target?.group ?? "";
	const region = target?.region ?? "";
	const imported = descriptor.serviceOfGroup(group);
	const recordedUid = deploymentUid || (imported === undefined ? missing?.deploymentUid : "");
	if (recordedUid) {
		const uid = responsibleUid(environment, recordedUid);
		const known = imported === undefined ? environment.byUid(uid)?.service : undefined;
		return { uid, service: known ?? (imported || environment.self.service), region };
	}
	const service = imported || environment.self.service;
	const uid =
		targetUid === "" ? (environment.find(service, region)?.uid ?? "") : environment.self.uid;
	return { uid, service, region };
}

/** Where an owner is, or would be. */
export function ownerPlace(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	owner: MetaOwner,
): TargetPlace {
	const known = ownerDeployment(context, owner);
	const { group = "", region = "" } = owner.owner ?? {};
	return known ?? { uid: "", service: context.descriptor.serviceOfGroup(group) || group, region };
}

/** Whether a restore has lost an owner, and that would be in the place. */
export function isLostIn(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	owner: MetaOwner,
	place: TargetPlace,
): boolean {
	return owner.missing !== undefined && isSamePlace(ownerPlace(context, owner), place);
}

/** Whether a reference has no target, and that would be in the place. */
export function isMissingIn(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	reference: OutgoingReference,
	place: TargetPlace,
): boolean {
	return reference.targetUid === "" && isSamePlace(targetPlace(context, reference), place);
}

function isSamePlace({ uid, service, region }: TargetPlace, other: TargetPlace): boolean {
	return (
		uid === other.uid && (uid !== "" || (service === other.service && region === other.region))
	);
}
