import { Code } from "@connectrpc/connect";
import { sleep } from "@plinth/runtime";
import {
	type Commit,
	type CommitOptions,
	Inconsistent,
	type Mutation,
	Refused,
	type StorageBackend,
} from "@plinth/storage";
import type { Asking } from "./asking.ts";
import { Busy } from "./busy.ts";
import { CommitAttempt } from "./commit-attempt.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { isTombstone } from "./removals.ts";
import { ResourceShadow } from "./shadow-records.ts";

/**
 * The storage as everything above sees it: what is committed through it keeps references true.
 *
 *     commit ─▶ attempt: read shadows ─▶ check deletions ─▶ establish ─▶ commit with all asserts
 *                  ▲                                                          │
 *                  └──── with jitter, where only shadows, guards or targets ──┘ changed meanwhile
 *
 * A conflict on what the caller writes or asserts is the caller's, as it would be without this store.
 *
 * Fails as Refused: FailedPrecondition for references and deletions that can't be, Unavailable where a
 * deployment that must be asked can't be reached, or others kept changing what the commit depends on.
 */
export function createConstraintStore(context: ConstraintContext, asking: Asking): StorageBackend {
	const { backend } = context;
	return {
		read: (id, options) => backend.read(id, options),
		list: (query, options) => backend.list(query, options),
		snapshot: (query, options) => backend.snapshot(query, options),
		listByOwner: (owner) => backend.listByOwner(owner),
		countByType: () => backend.countByType(),
		watchList: (query, options) => backend.watchList(query, options),
		catchUp: (signal) => backend.catchUp(signal),
		close: () => backend.close(),
		commit: (mutations, options) => commit(context, asking, mutations, options),
	};
}

async function commit(
	context: ConstraintContext,
	asking: Asking,
	mutations: readonly Mutation[],
	options: CommitOptions = {},
): Promise<Commit> {
	if (mutations.every(isNoneOfOurs)) {
		return context.backend.commit(mutations, options);
	}
	const { runtime, limits } = context;
	let pauseMs = limits.pauseMs / 50;
	for (let left = limits.attempts; ; left--) {
		const attempt = new CommitAttempt(context, asking, mutations, options);
		try {
			return await attempt.run();
		} catch (failure) {
			const again = failure instanceof Busy || attempt.isConflictOfOurs(failure);
			if (!(failure instanceof Inconsistent)) {
				await attempt.takeBack();
			}
			if (!again || left <= 1) {
				if (!(failure instanceof Inconsistent)) {
					attempt.giveUp();
				}
				throw again ? keptChanging(failure) : attempt.asOfCaller(failure);
			}
		}
		await sleep(runtime.clock, pauseMs * (0.5 + runtime.random.next()));
		pauseMs = Math.min(pauseMs * 2, limits.pauseMs);
	}
}

/** Records of this package, tombstones and asserts have no references. */
function isNoneOfOurs(mutation: Mutation): boolean {
	if (mutation.op === "assert") {
		return true;
	}
	const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
	const { group, kind } = ResourceShadow.type;
	return isTombstone({ id }) || (id?.type?.kind === kind && id.type.group === group);
}

function keptChanging(failure: unknown): Refused {
	const why = failure instanceof Busy ? failure.message : "references changed at the same time";
	return new Refused(Code.Unavailable, `${why}: try again`);
}
