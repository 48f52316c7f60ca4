import type { MetaOwner } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import { responsibleUid } from "../succession/successors.ts";

type Context = Pick<ConstraintContext, "descriptor" | "environment">;

/** An owner, and the deployment that has said that it is valid, if one has. */
export type KnownOwner = Pick<MetaOwner, "deploymentUid"> & {
	readonly owner?: Pick<KeyLike, "group" | "region"> | undefined;
};

/**
 * The deployment that stores an owner, if it is known: the one that has said before that the owner is valid, or its
 * successor. Otherwise the one that is found for the service and region, which may be one of several.
 */
export function ownerDeployment(
	context: Context,
	{ owner, deploymentUid }: KnownOwner,
): DeploymentInfo | undefined {
	const { environment } = context;
	return deploymentUid === "" || isPlanted("look for the deployment of an owner that is recorded")
		? findOwner(context, owner)
		: environment.byUid(responsibleUid(environment, deploymentUid));
}

/**
 * Whether an owner was valid for a deployment that has a successor, which has not said so yet. If that has no such owner,
 * a restore has lost it: had it been deleted before, the ownee would have been told.
 *
 * Invariant: a record with a deployment, and without an answer that the owner is not valid, was valid. It need not say so any
 * longer: a restore of this deployment, or a write of other flags, takes that back, so that the owner is queried again.
 */
export function isInherited(
	context: Context,
	owner: KnownOwner & Pick<MetaOwner, "valid" | "notValidAnswers">,
): boolean {
	const { valid, notValidAnswers, deploymentUid } = owner;
	if (notValidAnswers > 0 || deploymentUid === "") {
		return false;
	}
	if (isPlanted("hold only owners that are recorded as valid") && !valid) {
		return false;
	}
	const known = ownerDeployment(context, owner);
	return (
		known !== undefined && known.uid !== deploymentUid && known.uid !== context.environment.self.uid
	);
}

/**
 * All deployments that may store an owner, by its service and region, which are not those of this deployment: the one
 * that is found there first. There are several if a server has registered with the storage of no other, for example with an empty one by mistake.
 */
export function deploymentsInPlace(
	context: Context,
	owner: KnownOwner["owner"],
): readonly DeploymentInfo[] {
	const { environment } = context;
	const found = findOwner(context, owner);
	if (found === undefined) {
		return [];
	}
	const others = environment
		.deployments()
		.filter(
			({ uid, service, region }) =>
				uid !== found.uid &&
				service === found.service &&
				region === found.region &&
				responsibleUid(environment, uid) === uid,
		);
	return [found, ...others];
}

function findOwner(
	{ descriptor, environment }: Context,
	owner: KnownOwner["owner"],
): DeploymentInfo | undefined {
	const service = owner && descriptor.serviceOfGroup(owner.group);
	return environment.findOwner(owner?.group ?? "", service, owner?.region ?? "");
}
