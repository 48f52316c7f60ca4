import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";

/** A holder query of another deployment. */
export interface Question {
	readonly target: KeyLike;
	readonly targetUid: string;
	/** Whether the target is irrevocably being deleted. */
	readonly deleting: boolean;
	/** Whether the decision may name a blocker. `undefined`: all. */
	readonly shows: ((blocker: Resource) => boolean) | undefined;
}

/**
 * Decisions that no concurrent write of this deployment can invalidate.
 *
 * "Yes, BLOCK" is always safe, and is returned at once. Every weaker decision is made only after the guard of
 * the target has changed, from an index that contains that change: a writer that read the old guard fails,
 * and one that reads the new guard establishes its reference again.
 *
 * If the target is irrevocably being deleted, any "yes" only means that the query will be repeated. It is
 * returned at once too, so that waiting deletions do not keep changing guards and failing writers.
 */
export async function finalDecisions(
	context: ConstraintContext,
	questions: readonly Question[],
	signal: AbortSignal,
): Promise<readonly HolderDecision[]> {
	return Promise.all(
		questions.map(async ({ target, targetUid, deleting, shows }) => {
			const first = await currentDecision(context, target, targetUid, { deleting, shows, signal });
			if (
				first.rules.includes(OnDelete.BLOCK) ||
				(isPlanted("decide yes, CASCADE without changing the guard") && first.rules.length > 0)
			) {
				return first;
			}
			if (deleting && (first.rules.length > 0 || first.owned)) {
				return first;
			}
			if (!isPlanted("decide no without changing the guard")) {
				const version = await context.guards.change(target);
				await context.index.reached(version, signal);
			}
			return currentDecision(context, target, targetUid, { deleting, shows, signal });
		}),
	);
}
