import type { ID } from "@plinth/proto";
import type { Rebase } from "./backend.ts";
import { evaluateMutations, type MutationEffect, type StateView } from "./compare-and-swap.ts";
import { CasFailure, WrongUid } from "./errors.ts";
import { checkCommitLimits, type StorageLimits } from "./limits.ts";
import type { Mutation } from "./mutation.ts";

/** A commit that the conditions of its mutations allow. */
export interface DecidedCommit {
	/** Those of the commit, or those that `rebase` has returned in their place. */
	readonly mutations: readonly Mutation[];
	/** One per mutation. */
	readonly effects: readonly MutationEffect[];
}

/**
 * Decides a commit as `evaluateMutations` does. If its first mutation conflicts, `rebase` decides on the stored
 * resource in its place. Both happen in one step, so that the mutations of `rebase` conflict only if other
 * mutations than the first do.
 *
 * @throws as `evaluateMutations`, and what `rebase` throws; Exhausted if the new mutations exceed the limits.
 */
export function decideCommit(
	mutations: readonly Mutation[],
	rebase: Rebase | undefined,
	state: StateView,
	limits: StorageLimits,
): DecidedCommit {
	try {
		return { mutations, effects: evaluateMutations(mutations, state) };
	} catch (failure) {
		const written = writtenFirst(mutations);
		if (rebase === undefined || written === undefined || !isOfFirst(failure)) {
			throw failure;
		}
		const rebased = rebase(state.lookup(written));
		if (rebased === undefined) {
			throw failure;
		}
		checkCommitLimits(rebased, limits);
		return { mutations: rebased, effects: evaluateMutations(rebased, state) };
	}
}

function isOfFirst(failure: unknown): boolean {
	return (
		(failure instanceof CasFailure || failure instanceof WrongUid) && failure.mutations.includes(0)
	);
}

function writtenFirst([first]: readonly Mutation[]): ID | undefined {
	return first?.op === "put" ? first.resource.id : first?.id;
}
