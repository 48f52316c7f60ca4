import { Code } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import {
	type CommitBatch,
	Exhausted,
	Fenced,
	type StateStore,
	StorageUnavailable,
} from "@plinth/storage";
import { deadline } from "../client/deadline.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError, mayHaveApplied, refusesAll } from "../client/etcd-error.ts";
import type { TxnResponse } from "../gen/etcdserverpb/rpc_pb.ts";
import type { StoreHistory } from "../history/store-history.ts";
import type { Keys } from "../keys.ts";
import type { CatchUp } from "../state/catch-up.ts";
import type { FollowedState } from "../state/followed-state.ts";
import type { VersionOffset } from "../state/version-offset.ts";
import type { PendingCommit } from "./pending-commit.ts";
import {
	type CommitOutcome,
	type DecidedCommit,
	outcomesOf,
	resultOf,
	type Transaction,
} from "./transaction.ts";

/** The dependencies of sending. */
export interface SendContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly history: StoreHistory;
	readonly offset: VersionOffset;
	readonly catchUp: CatchUp;
	readonly state: FollowedState;
	readonly clock: Clock;
	/** How long to wait for the state, in milliseconds. */
	readonly timeoutMs: number;
	/** Called after the transaction, if it has stored commits. */
	readonly onBatch?: (batch: CommitBatch) => void;
}

/**
 * Sends a transaction once, and ensures that each of its commits settles here, by the watch or by its timeout,
 * or is decided again.
 *
 * @param again Decides a commit again.
 */
export async function sendTransaction(
	transaction: Transaction,
	context: SendContext,
	again: (pending: PendingCommit) => void,
): Promise<void> {
	const { client, keys, offset, history, catchUp } = context;
	const { store } = context.state;
	const request = transaction.request(keys, offset, history.intact());
	const beginMs = context.clock.monotonic();
	let response: TxnResponse;
	try {
		response = await client.transaction(request);
	} catch (error) {
		if (!(error instanceof EtcdError)) {
			throw error;
		}
		if (mayHaveApplied(error)) {
			await catchUpAfter(error, store, context);
		}
		await failed(transaction, error, again);
		return;
	}
	if (!response.succeeded) {
		// Nothing was changed: history is lost, which catching up detects, or the slot of the mark was reused.
		await catchUp.newest();
		for (const { pending } of transaction.commits) {
			pending.fresh = true;
			again(pending);
		}
		return;
	}
	const outcomes = outcomesOf(response, transaction.commits);
	measure(transaction, outcomes, beginMs, context);
	await settle(transaction, response, outcomes, context, again);
}

function measure(
	{ commits }: Transaction,
	outcomes: readonly CommitOutcome[],
	beginMs: number,
	{ clock, onBatch }: Pick<SendContext, "clock" | "onBatch">,
): void {
	const stored = commits.filter((_, index) => outcomes[index] === "done");
	if (onBatch !== undefined && stored.length > 0) {
		onBatch({
			commits: stored.length,
			// They are not in order of arrival.
			longestWaitMs: Math.max(...stored.map(({ pending }) => beginMs - pending.sinceMs)),
			writeMs: clock.monotonic() - beginMs,
		});
	}
}

async function settle(
	{ commits }: Transaction,
	response: TxnResponse,
	outcomes: readonly CommitOutcome[],
	{ state, offset, clock, timeoutMs }: SendContext,
	again: (pending: PendingCommit) => void,
): Promise<void> {
	const revision = offset.versionOf(response.header?.revision ?? 0n);
	for (const [index, { pending }] of commits.entries()) {
		if (outcomes[index] === "fenced" && pending.fence !== undefined) {
			pending.reject(new Fenced(pending.fence.lease));
		}
	}
	using within = deadline(clock, timeoutMs);
	try {
		await state.gate.reached(revision, within.signal);
	} catch {
		// The commits have timed out.
		return;
	}
	for (const [index, { pending, effects }] of commits.entries()) {
		if (outcomes[index] === "done") {
			// The watch has resolved it already, unless the state was reloaded meanwhile.
			pending.resolve(resultOf(pending, effects, revision, () => undefined));
		} else {
			pending.fresh = true;
			again(pending);
		}
	}
}

/**
 * Waits until the state has what etcd had when it refused a transaction. The watch has then resolved the commits that etcd
 * has applied nevertheless.
 *
 * @param sentWith The state when the transaction was sent.
 * @throws StorageUnavailable if commits that are still pending may have been applied.
 */
async function catchUpAfter(
	error: EtcdError,
	sentWith: StateStore,
	{ catchUp, state }: Pick<SendContext, "catchUp" | "state">,
): Promise<void> {
	await catchUp.newest();
	if (state.store !== sentWith) {
		// It was loaded again meanwhile, and the watch has not delivered what was loaded.
		throw new StorageUnavailable(`${error.message}; the commit may have been applied`, {
			cause: error,
		});
	}
}

async function failed(
	{ commits, applied }: Transaction,
	error: EtcdError,
	again: (pending: PendingCommit) => void,
): Promise<void> {
	if (error.outcome === "refused") {
		refused(commits, error, again);
		return;
	}
	if (error.outcome === "unknown") {
		// It may have been applied: then the watch delivers it, and the commits that are still pending are
		// those whose guards have failed.
		const allSettled = Promise.allSettled(commits.map(({ pending }) => pending.result));
		await Promise.race([applied, allSettled]);
	}
	for (const { pending } of commits) {
		again(pending);
	}
}

function refused(
	commits: readonly DecidedCommit[],
	error: EtcdError,
	again: (pending: PendingCommit) => void,
): void {
	for (const { pending } of commits) {
		if (error.code === Code.Unauthenticated) {
			// No commit is at fault, and no attempt succeeds until the password is correct.
			pending.reject(new StorageUnavailable(error.message, { cause: error }));
		} else if (commits.length > 1 && !refusesAll(error)) {
			// etcd does not report which commit caused it.
			pending.alone = true;
			again(pending);
		} else if (error.code === Code.ResourceExhausted || error.code === Code.InvalidArgument) {
			pending.reject(new Exhausted(error.message, { cause: error }));
		} else {
			pending.reject(new StorageUnavailable(error.message, { cause: error }));
		}
	}
}
