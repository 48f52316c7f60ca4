import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { responsibleUid } from "../succession/successors.ts";

/** How many references this deployment's resources have to resources of one deployment. */
export interface ReferenceCounts {
	references: number;
	/** Those without a target. */
	missing: number;
	/** The service and the region of a target. */
	readonly service: string;
	readonly region: string;
}

/** How many shadows are visited between two iterations of the event loop. */
const visitedPerTurn = 1_000;

/**
 * Counts the references of this deployment's resources, by uid of the deployment that is responsible for the target
 * now. The uid is empty for missing targets of a service that has no deployment in their region. It visits all shadows, and lets others run in between: the counts are those of no single moment.
 *
 * @throws the reason of the signal.
 */
export async function countReferences(
	context: ConstraintContext,
	signal: AbortSignal,
): Promise<ReadonlyMap<string, ReferenceCounts>> {
	const { index, runtime } = context;
	const counts = new Map<string, ReferenceCounts>();
	let visited = 0;
	for (const { shadow } of index.all()) {
		for (const reference of shadow.outgoing) {
			const { service, region } = placeOf(context, reference);
			const uid = responsible(context, reference);
			const count = counts.get(uid) ?? { references: 0, missing: 0, service, region };
			count.references += 1;
			count.missing += Number(reference.targetUid === "");
			counts.set(uid, count);
		}
		visited += 1;
		if (visited % visitedPerTurn === 0) {
			await runtime.scheduler.turn();
			signal.throwIfAborted();
		}
	}
	return counts;
}

/** The deployment that is responsible for the target. A missing target has none but by its place. */
function responsible(context: ConstraintContext, reference: OutgoingReference): string {
	const { environment } = context;
	const { deploymentUid, targetUid } = reference;
	if (deploymentUid !== "") {
		return responsibleUid(environment, deploymentUid);
	}
	const { service, region } = placeOf(context, reference);
	return targetUid === "" ? (environment.find(service, region)?.uid ?? "") : environment.self.uid;
}

function placeOf(
	{ descriptor, environment }: ConstraintContext,
	{ target }: OutgoingReference,
): { readonly service: string; readonly region: string } {
	return {
		service: descriptor.serviceOfGroup(target?.group ?? "") || environment.self.service,
		region: target?.region ?? "",
	};
}
