import type { ConstraintContext } from "../node/constraint-context.ts";
import { ownerPlace, type TargetPlace, targetPlace } from "./target-place.ts";

/** How many references this deployment's resources have to resources of one deployment. */
export interface ReferenceCounts {
	references: number;
	/** Those without a target. */
	missing: number;
	/** Those without a target that an operator has decided to keep. */
	kept: number;
	/** Where the targets are. */
	readonly place: TargetPlace;
}

/** How many shadows are visited between two iterations of the event loop. */
const visitedPerTurn = 1_000;

/**
 * Counts the references of this deployment's resources, for each place of targets. It visits all shadows, and lets others
 * run in between: the counts are those of no single moment.
 *
 * @throws the reason of the signal.
 */
export async function countReferences(
	context: ConstraintContext,
	signal: AbortSignal,
): Promise<readonly ReferenceCounts[]> {
	const { index, runtime } = context;
	const counts = new Map<string, ReferenceCounts>();
	const count = (place: TargetPlace, isMissing: boolean, isKept: boolean) => {
		const key = place.uid || `${place.service} ${place.region}`;
		const found = counts.get(key) ?? { references: 0, missing: 0, kept: 0, place };
		counts.set(key, found);
		found.references += 1;
		found.missing += Number(isMissing);
		found.kept += Number(isMissing && isKept);
	};
	let visited = 0;
	for (const { shadow } of index.all()) {
		for (const reference of shadow.outgoing) {
			const isMissing = reference.targetUid === "";
			count(targetPlace(context, reference), isMissing, reference.missing?.isKept ?? false);
		}
		for (const owner of shadow.metaOwners) {
			if (owner.missing !== undefined) {
				count(ownerPlace(context, owner), true, owner.missing.isKept);
			}
		}
		visited += 1;
		if (visited % visitedPerTurn === 0) {
			await runtime.scheduler.turn();
			signal.throwIfAborted();
		}
	}
	return [...counts.values()];
}
