import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext, ReferenceRelease } from "../node/constraint-context.ts";
import type { ReferencePlan } from "./reference-plan.ts";

/** The hints about removed references, for the deployments that store the targets. */
export function releasesOf(
	{ descriptor, environment }: Pick<ConstraintContext, "descriptor" | "environment">,
	outgoing: readonly OutgoingReference[],
): readonly ReferenceRelease[] {
	return outgoing.flatMap(({ target, targetUid }) => {
		const service = target && descriptor.serviceOfGroup(target.group);
		if (target === undefined || service === undefined) {
			return [];
		}
		const keeper = environment.find(service || environment.self.service, target.region);
		return keeper === undefined || keeper.uid === environment.self.uid
			? []
			: [{ deploymentUid: keeper.uid, target, targetUid }];
	});
}

/** The hints about established references that will not be committed. */
export function abandonedBy({
	established,
}: Pick<ReferencePlan, "established">): readonly ReferenceRelease[] {
	return established.map(({ target, by }) => ({
		deploymentUid: by.deployment.uid,
		target,
		targetUid: by.uid,
	}));
}
