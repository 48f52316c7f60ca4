import { randomUUID } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type ID, ResourceSchema } from "@plinth/proto";
import type { Clock, Fence, Scheduler } from "@plinth/runtime";
import {
	type Commit,
	changesNothing,
	checkGrowth,
	Exhausted,
	evaluate,
	Fenced,
	growthOf,
	Inconsistent,
	type Mutation,
	type Step,
	type StorageLimits,
	stamp,
} from "@plinth/storage";
import type { CatchUp } from "./catch-up.ts";
import { deadline } from "./client/deadline.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import type { FollowedState } from "./followed-state.ts";
import type { TxnResponse } from "./gen/etcdserverpb/rpc_pb.ts";
import { KeyClaims } from "./key-claims.ts";
import { type Keys, keyText } from "./keys.ts";
import type { PendingCommit } from "./pending-commit.ts";
import { answer, answersOf, type DecidedCommit, Transaction } from "./transaction.ts";

/** What etcd takes in one request, as its flags say. */
export interface EtcdRequestLimits {
	/** `--max-txn-ops`. */
	readonly maxTxnOps: number;
	/** `--max-request-bytes`. */
	readonly maxRequestBytes: number;
}

/** What group commits are made of. */
export interface GroupCommitContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
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
/** What the parts of a request take beside keys and values, roughly: per mutation. */
const mutationOverhead = 64;
/** What a request takes beside its mutations. */
const requestOverhead = 4096;

type Decision =
	| { readonly kind: "send"; readonly commit: DecidedCommit }
	/** What this server knows says no, or nothing: etcd may know more. */
	| { readonly kind: "refresh" }
	| { readonly kind: "answered" };

/**
 * Commits that wait at the same time share a transaction of etcd, in which each has guards of its own.
 *
 * ```
 *   commit() ─▶ waiting ─▶ decide against the state ─▶ etcd, if no key has changed since
 *                 ▲          │ no, or nothing to do        │ done            │ conflict
 *                 │          ▼                             ▼                 ▼
 *                 ├──── catch up ◀── (once)        the watch delivers    catch up to
 *                 └──────────────────────────────  it: answer            its revision ─┐
 *                 └─────────────────────────────────────────────────────────────────────┘
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
	/** Tells this server's transactions from all others, of former lives too. */
	readonly #instance = randomUUID();
	#transactions = 0;
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
		if (this.#pending.size >= pendingCommits) {
			throw new Exhausted(`${pendingCommits} commits wait already: try again later`);
		}
		const { resolve, reject, promise } = Promise.withResolvers<Commit>();
		this.#add(mutations, fence, { resolve, reject, promise });
		return promise;
	}

	/** Resolves when all commits are answered that were made before. */
	async settled(): Promise<void> {
		await Promise.allSettled([...this.#pending].map(({ answered }) => answered));
	}

	/** The transaction under way that has put this value under the head key. */
	ownTransaction(head: Uint8Array): Transaction | undefined {
		return this.#underWay.get(keyText(head));
	}

	#add(
		mutations: readonly Mutation[],
		fence: Fence | undefined,
		{ promise, ...answer }: PromiseWithResolvers<Commit>,
	): void {
		const { clock, timeoutMs, keys } = this.#context;
		const names = mutations.map((mutation) => keys.resource(idOf(mutation)));
		const bodies = mutations.flatMap((mutation) =>
			mutation.op === "put"
				? [toBinary(ResourceSchema, { ...mutation.resource, version: "" })]
				: [],
		);
		let settled = false;
		const settle = () => {
			settled = true;
			timer.cancel();
			this.#waiting.delete(pending);
			this.#pending.delete(pending);
		};
		const pending: PendingCommit = {
			mutations,
			keys: names,
			bodies,
			bytes: sizeOf(names, bodies),
			fence,
			fresh: false,
			alone: false,
			get settled() {
				return settled;
			},
			answered: promise,
			resolve: (commit) => {
				if (!settled) {
					settle();
					answer.resolve(commit);
				}
			},
			reject: (error) => {
				if (!settled) {
					settle();
					answer.reject(error);
				}
			},
		};
		const timer = clock.setTimer(timeoutMs, () =>
			pending.reject(
				new Inconsistent(
					`etcd has not confirmed the commit within ${timeoutMs} ms: it may have landed, or may still land`,
				),
			),
		);
		const { maxRequestBytes } = this.#context.requestLimits;
		this.#pending.add(pending);
		if (pending.bytes + requestOverhead > maxRequestBytes) {
			pending.reject(
				new Exhausted(
					`commit of ${pending.bytes} bytes: etcd takes requests of at most ${maxRequestBytes} bytes`,
				),
			);
			return;
		}
		this.#wait(pending);
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
		const { maxTxnOps, maxRequestBytes } = this.#context.requestLimits;
		const group: DecidedCommit[] = [];
		const claims = new KeyClaims();
		let bytes = requestOverhead;
		let widest = 0;
		let growth = this.#growthUnderWay;
		for (const pending of this.#waiting) {
			// Etcd counts the operations of a transaction and of the largest one nested in it together.
			const width = pending.keys.length + (pending.fence === undefined ? 0 : 1);
			const full =
				1 + group.length + 1 + Math.max(widest, width) > maxTxnOps ||
				bytes + pending.bytes > maxRequestBytes ||
				(pending.alone && group.length > 0);
			if (full) {
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
				bytes += pending.bytes;
				growth += decision.commit.growth;
				widest = Math.max(widest, width);
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
		this.#transactions += 1;
		const transaction = new Transaction(`${this.#instance}/${this.#transactions}`, commits);
		const growth = commits.reduce((sum, commit) => sum + commit.growth, 0);
		this.#underWay.set(transaction.token, transaction);
		this.#growthUnderWay += growth;
		for (const commit of commits) {
			this.#claims.add(commit);
		}
		try {
			await this.#outcome(transaction);
		} catch (error) {
			for (const { pending } of commits) {
				pending.reject(error);
			}
		} finally {
			this.#underWay.delete(transaction.token);
			this.#growthUnderWay -= growth;
			for (const commit of commits) {
				this.#claims.remove(commit);
			}
			this.#schedule();
		}
	}

	async #outcome(transaction: Transaction): Promise<void> {
		const { client, keys } = this.#context;
		let response: TxnResponse;
		try {
			response = await client.transaction(transaction.request(keys));
		} catch (error) {
			if (!(error instanceof EtcdError)) {
				throw error;
			}
			await this.#failed(transaction, error);
			return;
		}
		await this.#answered(transaction, response);
	}

	async #answered(transaction: Transaction, response: TxnResponse): Promise<void> {
		const { state, clock, timeoutMs } = this.#context;
		const revision = Number(response.header?.revision ?? 0n);
		const answers = answersOf(response, transaction.commits);
		for (const [index, { pending }] of transaction.commits.entries()) {
			if (answers[index] === "fenced" && pending.fence !== undefined) {
				pending.reject(new Fenced(pending.fence.lease));
			}
		}
		using within = deadline(clock, timeoutMs);
		try {
			await state.gate.reached(revision, within.signal);
		} catch {
			// The commits' own time is over.
			return;
		}
		for (const [index, { pending, steps }] of transaction.commits.entries()) {
			if (answers[index] === "done") {
				// The watch has answered already, unless the state was loaded anew meanwhile.
				pending.resolve(answer(pending, steps, revision, () => undefined));
			} else {
				pending.fresh = true;
				this.#wait(pending);
			}
		}
	}

	async #failed({ commits, applied }: Transaction, error: EtcdError): Promise<void> {
		if (error.outcome === "not-done") {
			for (const { pending } of commits) {
				this.#wait(pending);
			}
			return;
		}
		if (error.outcome === "refused") {
			this.#refused(commits, error);
			return;
		}
		// It may have landed: then the watch will tell, and the commits that it has not answered are
		// those whose guards have failed.
		const answered = Promise.allSettled(commits.map(({ pending }) => pending.answered));
		await Promise.race([applied, answered]);
		for (const { pending } of commits) {
			if (!pending.settled) {
				pending.fresh = true;
				this.#wait(pending);
			}
		}
	}

	#refused(commits: readonly DecidedCommit[], error: EtcdError): void {
		for (const { pending } of commits) {
			if (commits.length > 1) {
				// Which of them it was, etcd does not say.
				pending.alone = true;
				this.#wait(pending);
			} else if (error.code === Code.ResourceExhausted || error.code === Code.InvalidArgument) {
				pending.reject(new Exhausted(error.message, { cause: error }));
			} else {
				pending.reject(new Inconsistent(error.message, { cause: error }));
			}
		}
	}
}

function idOf(mutation: Mutation): ID {
	const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
	if (id === undefined) {
		throw new TypeError("put needs an id with a type and a name");
	}
	return id;
}

function sizeOf(keys: readonly string[], bodies: readonly Uint8Array[]): number {
	let size = 0;
	for (const key of keys) {
		// Once to compare, once to write.
		size += 2 * key.length + mutationOverhead;
	}
	for (const { byteLength } of bodies) {
		size += byteLength;
	}
	return size;
}
