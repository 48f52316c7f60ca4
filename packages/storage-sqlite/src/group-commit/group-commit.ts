import { toBinary } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import type { Clock, Fence, Logger, Scheduler } from "@plinth/runtime";
import {
	type Change,
	type Commit,
	changesNothing,
	checkGrowth,
	Exhausted,
	evaluate,
	Fenced,
	growthOf,
	Inconsistent,
	type Mutation,
	type StateStore,
	type StorageLimits,
	stamp,
} from "@plinth/storage";
import type { RowWrite } from "../file/row-table.ts";
import { WriteFailure } from "../thread/storage-thread.ts";
import type { CommitBatch } from "./commit-batch.ts";
import { PendingState } from "./pending-state.ts";

/** What group commits are made of. */
export interface GroupCommitContext {
	/** What commits are decided against and applied to: another one after a restore. */
	store(): StateStore;
	readonly scheduler: Scheduler;
	/** For what is measured. */
	readonly clock: Clock;
	/** Called with each group that was written, before its commits are answered. */
	readonly onBatch?: (batch: CommitBatch) => void;
	readonly limits: StorageLimits;
	/** Reports a disk that is full, and that has room again. */
	readonly log?: Pick<Logger, "warn" | "info">;
	/** Called once, when no commit is accepted any more. */
	readonly onBroken?: (failure: Inconsistent) => void;
	/** Whether the fence is that of the lease's holder. */
	isCurrent(fence: Fence): boolean;
	/** Puts rows on disk in one transaction; see `StorageThread.write`. */
	write(revision: number, rows: readonly RowWrite[]): Promise<void>;
}

interface Waiting {
	readonly kind: "commit";
	readonly mutations: readonly Mutation[];
	/** Per put, the serialized message without a version: made while the disk is busy with others. */
	readonly bodies: readonly Uint8Array[];
	readonly fence: Fence | undefined;
	/** Since when it waits, on the monotonic clock. */
	readonly sinceMs: number;
	resolve(commit: Commit): void;
	reject(error: unknown): void;
}

/** What runs alone, between two groups. */
interface Turn {
	readonly kind: "turn";
	/** Never rejects. */
	run(): Promise<void>;
	reject(error: unknown): void;
}

/** What becomes of a commit. Nobody may know before the group is on disk. */
type Outcome =
	| {
			readonly kind: "decided";
			readonly waiting: Waiting;
			readonly commit: Commit;
			readonly revision: number;
			readonly changes: readonly Change[];
	  }
	| { readonly kind: "refused"; readonly waiting: Waiting; readonly error: unknown };

/** Commits of one transaction at most; 20 ms of the worker's time. */
const groupCommits = 1024;
/** A group ends with the commit that takes its rows over this. */
const groupBytes = 8 * 1024 * 1024;
/** Commits that may wait at the same time. */
const waitingCommits = 16_384;
/** Bytes of the resources of commits that may wait at the same time: eight groups. */
const waitingBytes = 64 * 1024 * 1024;

/**
 * Commits that wait at the same time share one transaction, and each gets its own revision.
 *
 * ```
 *   commit() ──▶ waiting ──▶ decide one by one ──▶ write all ──▶ apply one by one ──▶ resolve
 *                            (this thread)         (worker)      (this thread)
 * ```
 *
 * One group is under way at a time; what comes in meanwhile is the next. A commit is decided against
 * the state store and what the commits before it in its group do, so that within a group, too, each
 * comes after the other. Nothing is applied before all of the group is on disk, and nobody is
 * answered before that: not even a commit that failed, which may have failed because of another
 * one's change that nobody can read yet.
 *
 * A commit that is fenced is decided with the group as well: it is before or after a change of the
 * lease's holder. `settled` waits for all that came before, so that who catches up after getting a
 * lease has seen the last of its former holder.
 *
 * A full disk fails the group, and the next one may succeed: SQLite could not write to its log, and nothing
 * of the group is there. After any other failure what is on disk is not known. That includes a sync that
 * failed because the disk is full: the kernel may have dropped what it could not write, and reports that
 * once. Then no commit is accepted any more, until the storage is opened again.
 */
export class GroupCommit {
	readonly #context: GroupCommitContext;
	#waiting: (Waiting | Turn)[] = [];
	#waitingBytes = 0;
	#underWay = false;
	#broken: Inconsistent | undefined;
	/** Commits that a full disk has failed since the last one that was written. */
	#failedByFullDisk = 0;

	constructor(context: GroupCommitContext) {
		this.#context = context;
	}

	/** Decides, writes and applies a commit. The failures are those of `StorageBackend.commit`. */
	async commit(mutations: readonly Mutation[], fence?: Fence): Promise<Commit> {
		if (this.#broken !== undefined) {
			throw this.#broken;
		}
		if (this.#waiting.length >= waitingCommits) {
			throw new Exhausted(
				`${waitingCommits} commits wait for the disk already, which is the limit: try again later`,
			);
		}
		const bodies = mutations.flatMap((mutation) =>
			mutation.op === "put"
				? [toBinary(ResourceSchema, { ...mutation.resource, version: "" })]
				: [],
		);
		const bytes = bytesOf(bodies);
		// One commit may always wait.
		if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > waitingBytes) {
			throw new Exhausted(
				`commits of ${this.#waitingBytes} bytes wait for the disk already, and ${waitingBytes} is the limit: try again later`,
			);
		}
		return this.#enqueue(mutations, bodies, fence);
	}

	/** Resolves when all commits that were made before are settled. */
	async settled(): Promise<void> {
		if (this.#underWay) {
			// Where the storage breaks meanwhile, all before it are settled as well.
			await Promise.allSettled([this.#enqueue([], [], undefined)]);
		}
	}

	/**
	 * Runs something alone: after all commits that were made before, and before all that are made from
	 * now on, which wait.
	 */
	async alone<T>(action: () => Promise<T>): Promise<T> {
		if (this.#broken !== undefined) {
			throw this.#broken;
		}
		return new Promise((resolve, reject) => {
			this.#add({ kind: "turn", run: () => action().then(resolve, reject), reject });
		});
	}

	/** Accepts no commits any more; those that wait fail. Of several failures, the first one counts. */
	break(failure: Inconsistent): void {
		if (this.#broken !== undefined) {
			return;
		}
		this.#broken = failure;
		const unanswered = this.#waiting;
		this.#waiting = [];
		this.#waitingBytes = 0;
		for (const { reject } of unanswered) {
			reject(failure);
		}
		this.#context.onBroken?.(failure);
	}

	#add(next: Waiting | Turn): void {
		this.#waiting.push(next);
		if (!this.#underWay) {
			this.#underWay = true;
			this.#context.scheduler.schedule(() => void this.#run());
		}
	}

	#enqueue(
		mutations: readonly Mutation[],
		bodies: readonly Uint8Array[],
		fence: Fence | undefined,
	): Promise<Commit> {
		return new Promise((resolve, reject) => {
			this.#waitingBytes += bytesOf(bodies);
			const sinceMs = this.#context.clock.monotonic();
			this.#add({ kind: "commit", mutations, bodies, fence, sinceMs, resolve, reject });
		});
	}

	/** Works through what waits, group by group. Never rejects. */
	async #run(): Promise<void> {
		for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
			if (first.kind === "turn") {
				this.#waiting.shift();
				await first.run();
			} else {
				await this.#group();
			}
		}
		this.#underWay = false;
	}

	async #group(): Promise<void> {
		const store = this.#context.store();
		const group = new PendingState(store);
		const outcomes: Outcome[] = [];
		for (const waiting of this.#waiting) {
			if (
				waiting.kind === "turn" ||
				outcomes.length === groupCommits ||
				group.bytes >= groupBytes
			) {
				break;
			}
			this.#waitingBytes -= bytesOf(waiting.bodies);
			outcomes.push(this.#outcome(waiting, group));
		}
		this.#waiting = this.#waiting.slice(outcomes.length);
		const beginMs = this.#context.clock.monotonic();
		try {
			if (group.revision > store.revision) {
				await this.#context.write(group.revision, group.rows());
			}
		} catch (error) {
			this.#fail(outcomes, error);
			return;
		}
		this.#measure(outcomes, beginMs);
		if (this.#failedByFullDisk > 0) {
			this.#context.log?.info(
				{ refused: this.#failedByFullDisk },
				"the disk of the storage has room again",
			);
			this.#failedByFullDisk = 0;
		}
		for (const outcome of outcomes) {
			if (outcome.kind === "decided" && outcome.changes.length > 0) {
				store.apply(outcome.revision, outcome.changes);
			}
		}
		for (const outcome of outcomes) {
			if (outcome.kind === "decided") {
				outcome.waiting.resolve(outcome.commit);
			} else {
				outcome.waiting.reject(outcome.error);
			}
		}
	}

	#measure(outcomes: readonly Outcome[], beginMs: number): void {
		const { onBatch, clock } = this.#context;
		const written = outcomes.filter(
			(outcome) => outcome.kind === "decided" && outcome.changes.length > 0,
		);
		// They are in the order in which they came.
		const [first] = written;
		if (onBatch !== undefined && first !== undefined) {
			onBatch({
				commits: written.length,
				longestWaitMs: beginMs - first.waiting.sinceMs,
				writeMs: clock.monotonic() - beginMs,
			});
		}
	}

	/** Answers a group that was not written. */
	#fail(outcomes: readonly Outcome[], error: unknown): void {
		const why = error instanceof Error ? error.message : String(error);
		const diskFull = error instanceof WriteFailure && error.diskFull;
		const failure = diskFull
			? new Exhausted(`the disk of the storage is full: ${why}`)
			: new Inconsistent(
					`the storage failed to write, and takes no commits until it is opened again: ${why}`,
				);
		for (const { waiting } of outcomes) {
			waiting.reject(failure);
		}
		if (diskFull) {
			if (this.#failedByFullDisk === 0) {
				this.#context.log?.warn(
					{ why },
					"the disk of the storage is full: commits are refused until it has room",
				);
			}
			this.#failedByFullDisk += outcomes.length;
		}
		if (failure instanceof Inconsistent) {
			this.break(failure);
		}
	}

	#outcome(waiting: Waiting, group: PendingState): Outcome {
		try {
			return this.#decide(waiting, group);
		} catch (error) {
			return { kind: "refused", waiting, error };
		}
	}

	#decide(waiting: Waiting, group: PendingState): Outcome {
		const { isCurrent, limits } = this.#context;
		const { mutations, fence, bodies } = waiting;
		if (fence !== undefined && !isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		const steps = evaluate(mutations, group);
		checkGrowth(group.stateBytes, steps, limits);
		const idle = changesNothing(steps);
		const revision = idle ? group.revision : group.revision + 1;
		const { commit, changes } = stamp(steps, idle ? "" : String(revision));
		group.add(revision, changes, bodies, growthOf(steps));
		return { kind: "decided", waiting, commit, revision, changes };
	}
}

function bytesOf(bodies: readonly Uint8Array[]): number {
	return bodies.reduce((sum, body) => sum + body.byteLength, 0);
}
