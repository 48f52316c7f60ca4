import type { Clock, Fence, Scheduler } from "@plinth/runtime";
import {
	type Commit,
	changesNothing,
	checkGrowth,
	Exhausted,
	evaluate,
	growthOf,
	Inconsistent,
	type Mutation,
	type Step,
	type StorageLimits,
	stamp,
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

/** What group commits are made of. */
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
}

/** Transactions under way at a time: while etcd syncs one, the next is on its way. */
const transactionsUnderWay = 2;
/** Commits that may wait at the same time. */
const pendingCommits = 16_384;

type Decision =
	| { readonly kind: "send"; readonly commit: DecidedCommit }
	/** What this server knows says no, or nothing: etcd may know more. */
	| { readonly kind: "refresh" }
	| { readonly kind: "answered" };

/**
 * Commits that wait at the same time share a transaction of etcd, in which each has guards of its own.
 *
 * ```
 *   commit() ─▶ waiting ─▶ decide ─▶ etcd: if no key has changed ─▶ the watch delivers it: answer
 *                  ▲          │                       │
 *                  │     no, or nothing to do     a key has changed
 *                  │          ▼                       │
 *                  └────── catch up ◀─────────────────┘
 * ```
 *
 * - A commit is decided by `evaluate` against the state that this server has, and sent with the
 *   condition that each key that it names, to write or to assert, is still at the version that it has
 *   there. So etcd need not know the rules, and a decision holds if etcd takes it.
 * - What this server's state speaks against, or what would change nothing, is decided again after
 *   catching up: an answer without a transaction must not come from a state older than the call.
 * - Guards of commits that share a transaction do not see each other's writes. So no two of them
 *   share a key that one of them writes. One whose keys a transaction under way writes waits
 *   for that: its guards would fail.
 * - A commit is answered when the state has it. Its own objects are what the state then holds: what
 *   the watch delivers of a server's own transactions is not decoded.
 * - A transaction without an answer may have landed. If it did, the watch tells; if nothing comes
 *   until the time is over, its commits are Inconsistent. It is never sent twice.
 */
export class GroupCommit {
	readonly #context: GroupCommitContext;
	readonly #underWay = new Map<string, Transaction>();
	readonly #claims = new KeyClaims();
	#growthUnderWay = 0;
	#waiting = new Set<PendingCommit>();
	readonly #pending = new Set<PendingCommit>();
	#scheduled = false;

	constructor(context: GroupCommitContext) {
		this.#context = context;
	}

	/** Decides and stores a commit. The failures are those of `StorageBackend.commit`. */
	async commit(mutations: readonly Mutation[], fence?: Fence): Promise<Commit> {
		this.#context.history.lost.throwIfAborted();
		if (this.#pending.size >= pendingCommits) {
			throw new Exhausted(`${pendingCommits} commits wait already: try again later`);
		}
		const { clock, timeoutMs, keys, requestLimits } = this.#context;
		const pending = createPendingCommit(mutations, fence, keys, (settled) => {
			timer.cancel();
			this.#waiting.delete(settled);
			this.#pending.delete(settled);
		});
		if (!fitsAlone(pending, requestLimits)) {
			throw new Exhausted(
				`commit of ${pending.bytes} bytes: etcd takes requests of at most ${requestLimits.maxRequestBytes} bytes`,
			);
		}
		const timer = clock.setTimer(timeoutMs, () =>
			pending.reject(
				new Inconsistent(
					`etcd has not confirmed the commit within ${timeoutMs} ms: it may have landed, or may still land`,
				),
			),
		);
		this.#pending.add(pending);
		this.#wait(pending);
		return pending.answered;
	}

	/** Fails all commits that have no answer yet. */
	fail(error: HistoryLost): void {
		for (const pending of [...this.#pending]) {
			pending.reject(error);
		}
	}

	/** Resolves when all commits are answered that were made before. */
	async settled(): Promise<void> {
		await Promise.allSettled([...this.#pending].map(({ answered }) => answered));
	}

	/** The transaction under way that has put this value under the head key. */
	ownTransaction(head: Uint8Array): Transaction | undefined {
		return this.#underWay.get(keyText(head));
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
		while (this.#underWay.size < transactionsUnderWay && this.#waiting.size > 0) {
			const commits = this.#takeGroup();
			if (commits.length === 0) {
				return;
			}
			void this.#send(commits);
		}
	}

	/** Takes commits out of the line that may share a transaction; others keep their places. */
	#takeGroup(): readonly DecidedCommit[] {
		const group: DecidedCommit[] = [];
		const claims = new KeyClaims();
		const room = new RequestRoom(this.#context.requestLimits);
		let growth = this.#growthUnderWay;
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
			const steps = evaluate(pending.mutations, state.store);
			if (changesNothing(steps)) {
				if (!pending.fresh) {
					return { kind: "refresh" };
				}
				pending.resolve(stamp(steps, "").commit);
				return { kind: "answered" };
			}
			checkGrowth(state.store.bytes + growthBefore, steps, limits);
			return { kind: "send", commit: this.#decided(pending, steps) };
		} catch (error) {
			if (!pending.fresh && !(error instanceof TypeError || error instanceof Exhausted)) {
				return { kind: "refresh" };
			}
			pending.reject(error);
			return { kind: "answered" };
		}
	}

	#decided(pending: PendingCommit, steps: readonly Step[]): DecidedCommit {
		const { store } = this.#context.state;
		const versions = pending.mutations.map(
			(mutation) => store.lookup(idOf(mutation))?.version ?? "",
		);
		return { pending, steps, versions, growth: growthOf(steps) };
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

	/** Sends a transaction and sees to it that its commits are answered. Never rejects. */
	async #send(commits: readonly DecidedCommit[]): Promise<void> {
		const transaction = new Transaction(this.#context.history.newMark(), commits);
		const growth = commits.reduce((sum, commit) => sum + commit.growth, 0);
		this.#underWay.set(transaction.mark.token, transaction);
		this.#growthUnderWay += growth;
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
			this.#underWay.delete(transaction.mark.token);
			this.#growthUnderWay -= growth;
			for (const commit of commits) {
				this.#claims.remove(commit);
			}
			this.#schedule();
		}
	}
}
