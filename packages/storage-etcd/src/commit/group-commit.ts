import type { Clock, Scheduler } from "@plinth/runtime";
import {
	assignVersion,
	type CommitBatch,
	type CommitOptions,
	type CommitResult,
	changesNothing,
	checkGrowth,
	Exhausted,
	evaluateMutations,
	type Mutation,
	type MutationEffect,
	memoryGrowth,
	type StorageLimits,
	StorageUnavailable,
} from "@plinth/storage";
import type { EtcdClient } from "../client/etcd-client.ts";
import type { HistoryLost, StoreHistory } from "../history/store-history.ts";
import { type Keys, keyText } from "../keys.ts";
import type { CatchUp } from "../state/catch-up.ts";
import type { FollowedState } from "../state/followed-state.ts";
import type { VersionOffset } from "../state/version-offset.ts";
import { KeyClaims } from "./key-claims.ts";
import { createPendingCommit, idOf, type PendingCommit } from "./pending-commit.ts";
import { type EtcdRequestLimits, fitsAlone, RequestRoom } from "./request-limits.ts";
import { sendTransaction } from "./send-transaction.ts";
import { type DecidedCommit, Transaction } from "./transaction.ts";

/** The dependencies of group commits. */
export interface GroupCommitContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly history: StoreHistory;
	readonly offset: VersionOffset;
	readonly state: FollowedState;
	readonly catchUp: CatchUp;
	readonly clock: Clock;
	readonly scheduler: Scheduler;
	readonly limits: StorageLimits;
	readonly requestLimits: EtcdRequestLimits;
	/** How long a commit may take, in milliseconds. */
	readonly timeoutMs: number;
	/** Called after each transaction that has stored commits. */
	readonly onBatch?: (batch: CommitBatch) => void;
}

/** The number of concurrent transactions: while etcd syncs one, the next is sent. */
const concurrentTransactions = 2;
/** The maximum of pending commits, and of their bytes. */
const pendingCommits = 16_384;
const pendingBytes = 64 * 1024 * 1024;

type Decision =
	| { readonly kind: "send"; readonly commit: DecidedCommit }
	/** By the state of this server the commit fails or changes nothing; etcd may be newer. */
	| { readonly kind: "refresh" }
	| { readonly kind: "settled" };

/**
 * Group commit: commits that wait at the same time share an etcd transaction, each with its own guards.
 *
 * ```
 *   commit() ─▶ waiting ─▶ decide ─▶ etcd: if no key has changed ─▶ the watch delivers it: resolve
 *                  ▲          │                       │
 *                  │     no, or nothing to do     a key has changed
 *                  │          ▼                       │
 *                  └────── catch up ◀─────────────────┘
 * ```
 *
 * - A commit is decided by `evaluateMutations` against the state of this server, and sent with the condition that each
 *   key that it writes or asserts still has the version of that state. So etcd does not need the rules, and
 *   a decision holds if etcd accepts it.
 * - A commit that fails by the state of this server, or would change nothing, is decided again after catching
 *   up: a result without a transaction must not come from a state older than the call.
 * - The guards of commits in one transaction do not see each other's writes, so no two of them may share a key
 *   that one of them writes. A commit with a key that a pending transaction writes waits for it, because its
 *   guards would fail.
 * - A commit resolves when the state has it. The state then has the objects of the commit itself: the events of
 *   a server's own transactions are not decoded.
 * - A transaction without a response may have been applied. If so, the watch delivers it; if nothing arrives
 *   in time, its commits fail as StorageUnavailable. It is never sent twice.
 */
export class GroupCommit {
	readonly #context: GroupCommitContext;
	readonly #transactions = new Map<string, Transaction>();
	readonly #claims = new KeyClaims();
	#pendingGrowth = 0;
	#waiting = new Set<PendingCommit>();
	readonly #pending = new Set<PendingCommit>();
	#pendingBytes = 0;
	#scheduled = false;

	constructor(context: GroupCommitContext) {
		this.#context = context;
	}

	/** Decides and stores a commit. The failures are those of `StorageBackend.commit`. */
	async commit(
		mutations: readonly Mutation[],
		options: Pick<CommitOptions, "fence" | "writtenBy"> = {},
	): Promise<CommitResult> {
		this.#context.history.lost.throwIfAborted();
		if (this.#pending.size >= pendingCommits) {
			throw new Exhausted(
				`${pendingCommits} commits are already waiting, which is the limit: try again later`,
			);
		}
		const { clock, timeoutMs, keys, requestLimits } = this.#context;
		const pending = createPendingCommit(
			mutations,
			{ ...options, sinceMs: clock.monotonic() },
			keys,
			(settled) => {
				timer.cancel();
				this.#waiting.delete(settled);
				this.#pendingBytes -= this.#pending.delete(settled) ? settled.bytes : 0;
			},
		);
		if (!fitsAlone(pending, requestLimits)) {
			throw new Exhausted(
				`commit of ${pending.bytes} bytes: etcd accepts requests of at most ${requestLimits.maxRequestBytes} bytes`,
			);
		}
		// One commit may always wait.
		if (this.#pending.size > 0 && this.#pendingBytes + pending.bytes > pendingBytes) {
			throw new Exhausted(
				`commits of ${this.#pendingBytes} bytes are already waiting, and the limit is ${pendingBytes}: try again later`,
			);
		}
		const timer = clock.setTimer(timeoutMs, () =>
			pending.reject(
				new StorageUnavailable(
					`etcd has not confirmed the commit within ${timeoutMs} ms: it may have been applied, or may still be`,
				),
			),
		);
		this.#pending.add(pending);
		this.#pendingBytes += pending.bytes;
		this.#wait(pending);
		return pending.result;
	}

	/** Fails all pending commits. */
	fail(error: HistoryLost): void {
		for (const pending of [...this.#pending]) {
			pending.reject(error);
		}
	}

	/** Resolves when all earlier commits have settled. */
	async settled(): Promise<void> {
		await Promise.allSettled([...this.#pending].map(({ result }) => result));
	}

	/** The pending transaction that has put this value under the head key. */
	ownTransaction(head: Uint8Array): Transaction | undefined {
		return this.#transactions.get(keyText(head));
	}

	#wait(pending: PendingCommit): void {
		if (!pending.settled) {
			this.#waiting.add(pending);
			this.#schedule();
		}
	}

	#schedule(): void {
		if (!this.#scheduled) {
			this.#scheduled = true;
			this.#context.scheduler.schedule(() => {
				this.#scheduled = false;
				this.#sendWaiting();
			});
		}
	}

	#sendWaiting(): void {
		while (this.#transactions.size < concurrentTransactions && this.#waiting.size > 0) {
			const commits = this.#takeGroup();
			if (commits.length === 0) {
				return;
			}
			void this.#send(commits);
		}
	}

	/** Removes commits from the queue that may share a transaction; others keep their positions. */
	#takeGroup(): readonly DecidedCommit[] {
		const group: DecidedCommit[] = [];
		const claims = new KeyClaims();
		const room = new RequestRoom(this.#context.requestLimits);
		let growth = this.#pendingGrowth;
		for (const pending of this.#waiting) {
			if (!room.fits(pending)) {
				break;
			}
			if (this.#claims.writes(pending) || claims.conflicts(pending)) {
				continue;
			}
			this.#waiting.delete(pending);
			const decision = this.#decide(pending, growth);
			if (decision.kind === "refresh") {
				void this.#refresh(pending);
			} else if (decision.kind === "send") {
				group.push(decision.commit);
				claims.add(decision.commit);
				room.add(pending);
				growth += decision.commit.growth;
				if (pending.alone) {
					break;
				}
			}
		}
		return group;
	}

	#decide(pending: PendingCommit, growthBefore: number): Decision {
		const { state, limits } = this.#context;
		try {
			const effects = evaluateMutations(pending.mutations, state.store);
			if (changesNothing(effects)) {
				if (!pending.fresh) {
					return { kind: "refresh" };
				}
				pending.resolve(assignVersion(effects, "").commit);
				return { kind: "settled" };
			}
			checkGrowth(state.store.bytes + growthBefore, effects, limits);
			return { kind: "send", commit: this.#decided(pending, effects) };
		} catch (error) {
			if (!pending.fresh && !(error instanceof TypeError || error instanceof Exhausted)) {
				return { kind: "refresh" };
			}
			pending.reject(error);
			return { kind: "settled" };
		}
	}

	#decided(pending: PendingCommit, effects: readonly MutationEffect[]): DecidedCommit {
		const { store } = this.#context.state;
		const versions = pending.mutations.map(
			(mutation) => store.lookup(idOf(mutation))?.version ?? "",
		);
		return { pending, effects, versions, growth: memoryGrowth(effects) };
	}

	/** Never rejects. */
	async #refresh(pending: PendingCommit): Promise<void> {
		const { catchUp } = this.#context;
		try {
			await (pending.fence === undefined ? catchUp.newest() : catchUp.newestWithin(pending.fence));
			pending.fresh = true;
			this.#wait(pending);
		} catch (error) {
			pending.reject(error);
		}
	}

	/** Sends a transaction and ensures that its commits settle. Never rejects. */
	async #send(commits: readonly DecidedCommit[]): Promise<void> {
		const transaction = new Transaction(this.#context.history.newMark(), commits);
		const growth = commits.reduce((sum, commit) => sum + commit.growth, 0);
		this.#transactions.set(transaction.mark.token, transaction);
		this.#pendingGrowth += growth;
		for (const commit of commits) {
			this.#claims.add(commit);
		}
		try {
			await sendTransaction(transaction, this.#context, (pending) => this.#wait(pending));
		} catch (error) {
			for (const { pending } of commits) {
				pending.reject(error);
			}
		} finally {
			this.#transactions.delete(transaction.mark.token);
			this.#pendingGrowth -= growth;
			for (const commit of commits) {
				this.#claims.remove(commit);
			}
			this.#schedule();
		}
	}
}
