import { toBinary } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import type { Clock, Fence, Logger, Scheduler } from "@plinth/runtime";
import {
	assignVersion,
	type CommitBatch,
	type CommitOptions,
	type CommitResult,
	changesNothing,
	checkGrowth,
	decideCommit,
	Exhausted,
	Fenced,
	type Mutation,
	memoryGrowth,
	type Rebase,
	type StateChange,
	type StateStore,
	type StorageLimits,
	StorageUnavailable,
} from "@plinth/storage";
import type { RowWrite } from "../file/row-table.ts";
import { WriteFailure } from "../thread/storage-thread.ts";
import { PendingState } from "./pending-state.ts";

/** The dependencies of group commits. */
export interface GroupCommitContext {
	/** The state that commits are decided against and applied to; replaced by a restore. */
	store(): StateStore;
	readonly scheduler: Scheduler;
	/** For measurements. */
	readonly clock: Clock;
	/** Called after each group is written, before its commits resolve. */
	readonly onBatch?: (batch: CommitBatch) => void;
	readonly limits: StorageLimits;
	/** Logs that the disk is full, and that it has room again. */
	readonly log?: Pick<Logger, "warn" | "info">;
	/** Called once, when commits are no longer accepted. */
	readonly onBroken?: (failure: StorageUnavailable) => void;
	/** Whether the fence belongs to the current holder of its lease. */
	isCurrent(fence: Fence): boolean;
	/** Writes rows to disk in one transaction; see `StorageThread.write`. */
	write(revision: number, rows: readonly RowWrite[]): Promise<void>;
}

interface Waiting {
	readonly kind: "commit";
	readonly mutations: readonly Mutation[];
	/** Per put, the serialized message without a version, prepared while another group is written. */
	readonly bodies: readonly Uint8Array[];
	readonly fence: Fence | undefined;
	readonly rebase: Rebase | undefined;
	readonly writtenBy: string | undefined;
	/** When it began to wait, on the monotonic clock. */
	readonly sinceMs: number;
	resolve(commit: CommitResult): void;
	reject(error: unknown): void;
}

const nothingToWrite = {
	...{ mutations: [], bodies: [] },
	...{ fence: undefined, rebase: undefined, writtenBy: undefined },
};

/** An action that runs alone, between two groups. */
interface Turn {
	readonly kind: "turn";
	/** Never rejects. */
	run(): Promise<void>;
	reject(error: unknown): void;
}

/** The outcome of a commit, which must not be visible before the group is on disk. */
type Outcome =
	| {
			readonly kind: "decided";
			readonly waiting: Waiting;
			readonly commit: CommitResult;
			readonly revision: number;
			readonly changes: readonly StateChange[];
	  }
	| { readonly kind: "refused"; readonly waiting: Waiting; readonly error: unknown };

/** The maximum of commits per transaction: 20 ms of the worker's time. */
const groupCommits = 1024;
/** A group ends with the commit that exceeds this size of rows. */
const groupBytes = 8 * 1024 * 1024;
/** The maximum of commits waiting at the same time. */
const waitingCommits = 16_384;
/** The maximum of bytes of commits waiting at the same time: eight groups. */
const waitingBytes = 64 * 1024 * 1024;

/**
 * Group commit: commits that wait at the same time share one transaction, each with its own revision.
 *
 * ```
 *   commit() ──▶ waiting ──▶ decide one by one ──▶ write all ──▶ apply one by one ──▶ resolve
 *                            (this thread)         (worker)      (this thread)
 * ```
 *
 * One group is written at a time; commits that arrive meanwhile form the next. A commit is decided against
 * the state store and the commits before it in its group, so that the commits of a group are serialized
 * too. A commit with `rebase` is decided again on what the commits before it leave, so that many writers of
 * one resource share a group. Nothing is applied before the whole group is on disk, and no commit settles
 * before that: not even a failed one, which may have failed because of a change that is not readable yet.
 *
 * Fences are checked with the group as well, so that a commit comes before or after a change of the lease's
 * holder. `settled` waits for all earlier commits, so that a new holder that catches up has seen all
 * commits of the former one.
 *
 * A full disk fails the group, and the next one may succeed: SQLite could not write to its log, and nothing
 * of the group was stored. After any other failure the content of the disk is unknown. That includes a
 * sync that failed because the disk is full: the kernel may have dropped the data, and reports that only
 * once. Then no commit is accepted until the storage is opened again.
 */
export class GroupCommit {
	readonly #context: GroupCommitContext;
	#waiting: (Waiting | Turn)[] = [];
	#waitingBytes = 0;
	#underWay = false;
	#broken: StorageUnavailable | undefined;
	/** The number of commits that failed because of a full disk since the last successful write. */
	#failedByFullDisk = 0;

	constructor(context: GroupCommitContext) {
		this.#context = context;
	}

	/** Decides, writes and applies a commit. The failures are those of `StorageBackend.commit`. */
	async commit(
		mutations: readonly Mutation[],
		{ fence, rebase, writtenBy }: Pick<CommitOptions, "fence" | "rebase" | "writtenBy"> = {},
	): Promise<CommitResult> {
		if (this.#broken !== undefined) {
			throw this.#broken;
		}
		if (this.#waiting.length >= waitingCommits) {
			throw new Exhausted(
				`${waitingCommits} commits are already waiting for the disk, which is the limit: try again later`,
			);
		}
		const bodies = bodiesOf(mutations);
		const bytes = bytesOf(bodies);
		// One commit may always wait.
		if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > waitingBytes) {
			throw new Exhausted(
				`commits of ${this.#waitingBytes} bytes are already waiting for the disk, and the limit is ${waitingBytes}: try again later`,
			);
		}
		return this.#enqueue({ mutations, bodies, fence, rebase, writtenBy });
	}

	/** Resolves when all earlier commits have settled. */
	async settled(): Promise<void> {
		if (this.#underWay) {
			// If the storage breaks meanwhile, all earlier commits have settled as well.
			await Promise.allSettled([this.#enqueue(nothingToWrite)]);
		}
	}

	/**
	 * Runs an action alone: after all earlier commits, and before all later ones, which wait for it.
	 */
	async alone<T>(action: () => Promise<T>): Promise<T> {
		if (this.#broken !== undefined) {
			throw this.#broken;
		}
		return new Promise((resolve, reject) => {
			this.#add({ kind: "turn", run: () => action().then(resolve, reject), reject });
		});
	}

	/** Stops accepting commits and fails those that wait. Only the first call has an effect. */
	break(failure: StorageUnavailable): void {
		if (this.#broken !== undefined) {
			return;
		}
		this.#broken = failure;
		const rejected = this.#waiting;
		this.#waiting = [];
		this.#waitingBytes = 0;
		for (const { reject } of rejected) {
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
		commit: Pick<Waiting, "mutations" | "bodies" | "fence" | "rebase" | "writtenBy">,
	): Promise<CommitResult> {
		return new Promise((resolve, reject) => {
			this.#waitingBytes += bytesOf(commit.bodies);
			const sinceMs = this.#context.clock.monotonic();
			this.#add({ kind: "commit", ...commit, sinceMs, resolve, reject });
		});
	}

	/** Processes waiting commits, group by group. Never rejects. */
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
				"the disk of the storage has space again",
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
		// They are in order of arrival.
		const [first] = written;
		if (onBatch !== undefined && first !== undefined) {
			onBatch({
				commits: written.length,
				longestWaitMs: beginMs - first.waiting.sinceMs,
				writeMs: clock.monotonic() - beginMs,
			});
		}
	}

	/** Rejects the commits of a group that was not written. */
	#fail(outcomes: readonly Outcome[], error: unknown): void {
		const why = error instanceof Error ? error.message : String(error);
		const diskFull = error instanceof WriteFailure && error.diskFull;
		const failure = diskFull
			? new Exhausted(`the disk of the storage is full: ${why}`)
			: writeFailed(why);
		for (const { waiting } of outcomes) {
			waiting.reject(failure);
		}
		if (diskFull) {
			if (this.#failedByFullDisk === 0) {
				this.#context.log?.warn(
					{ why },
					"the disk of the storage is full: commits are refused until it has space",
				);
			}
			this.#failedByFullDisk += outcomes.length;
		}
		if (failure instanceof StorageUnavailable) {
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
		const { fence } = waiting;
		if (fence !== undefined && !isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		const { mutations, effects } = decideCommit(waiting.mutations, waiting.rebase, group, limits);
		checkGrowth(group.stateBytes, effects, limits);
		const idle = changesNothing(effects);
		const revision = idle ? group.revision : group.revision + 1;
		const { commit, changes } = assignVersion(
			effects,
			idle ? "" : String(revision),
			waiting.writtenBy,
		);
		const bodies = mutations === waiting.mutations ? waiting.bodies : bodiesOf(mutations);
		group.add(revision, changes, bodies, memoryGrowth(effects));
		return { kind: "decided", waiting, commit, revision, changes };
	}
}

/** The failure of a storage whose disk has failed. */
export function writeFailed(why: string): StorageUnavailable {
	return new StorageUnavailable(
		`the storage failed to write, and accepts no commits until it is opened again: ${why}`,
	);
}

/** Per put, the serialized message without a version. */
function bodiesOf(mutations: readonly Mutation[]): readonly Uint8Array[] {
	return mutations.flatMap((mutation) =>
		mutation.op === "put" ? [toBinary(ResourceSchema, { ...mutation.resource, version: "" })] : [],
	);
}

function bytesOf(bodies: readonly Uint8Array[]): number {
	return bodies.reduce((sum, body) => sum + body.byteLength, 0);
}
