import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ConstraintContext } from "./constraint-context.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";
import type { KeyLike } from "./resource-key.ts";

/** A question of another deployment. */
export interface Question {
	readonly target: KeyLike;
	readonly targetUid: string;
	/** Whether the target is being deleted for good. */
	readonly deleting: boolean;
	/** Whether the answer may name a blocker; all where it is absent. */
	readonly shows: ((blocker: Resource) => boolean) | undefined;
}

/**
 * Answers that no write of this deployment overtakes.
 *
 * "Yes, BLOCK" errs on the safe side, and is said at once. Everything weaker is said only after the
 * target's guard was changed, and after another look with an index that has that very change: a
 * writer that had read the old guard fails, and one that has read the new one establishes anew.
 *
 * Where the target is being deleted for good, every "yes" means no more than to ask again: it is said at
 * once too, so that deletions that wait do not keep changing guards under those who write.
 */
export async function finalDecisions(
	context: ConstraintContext,
	questions: readonly Question[],
	signal: AbortSignal,
): Promise<readonly HolderDecision[]> {
	return Promise.all(
		questions.map(async ({ target, targetUid, deleting, shows }) => {
			const first = await currentDecision(context, target, targetUid, { deleting, shows });
			if (first.rules.includes(OnDelete.BLOCK)) {
				return first;
			}
			if (deleting && (first.rules.length > 0 || first.owned)) {
				return first;
			}
			const version = await context.guards.change(target);
			await context.index.reached(version, signal);
			return currentDecision(context, target, targetUid, { deleting, shows });
		}),
	);
}
