import type { ConstraintContext } from "../node/constraint-context.ts";
import { type TargetPlace, targetPlace } from "./target-place.ts";

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
	let visited = 0;
	for (const { shadow } of index.all()) {
		for (const reference of shadow.outgoing) {
			const place = targetPlace(context, reference);
			const key = place.uid || `${place.service} ${place.region}`;
			const count = counts.get(key) ?? { references: 0, missing: 0, kept: 0, place };
			count.references += 1;
			if (reference.targetUid === "") {
				count.missing += 1;
				count.kept += Number(reference.missing?.isKept ?? false);
			}
			counts.set(key, count);
		}
		visited += 1;
		if (visited % visitedPerTurn === 0) {
			await runtime.scheduler.turn();
			signal.throwIfAborted();
		}
	}
	return [...counts.values()];
}
