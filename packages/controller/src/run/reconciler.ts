import { type Cache, cloningView } from "@plinth/cache";
import { cloneID, type ID } from "@plinth/proto";
import { DecodeError, displayName, familyKey, idOf, nameKey } from "@plinth/resource";
import { requeueAfter } from "../define/requeue.ts";
import { messageOf } from "../queue/error-message.ts";
import type { Priority } from "../queue/queue-entry.ts";
import type { Task } from "../queue/task.ts";
import { type Outcome, WorkerPool } from "../queue/worker-pool.ts";
import { RequestCauses } from "../queue/write-chains.ts";
import { shardOf } from "../shards/shard-of.ts";
import type { OwnWrites } from "./own-writes.ts";
import { RequestBursts } from "./request-bursts.ts";
import type { ShardGate } from "./shard-gate.ts";
import type { UndecodableResources } from "./undecodable.ts";
import { WorkContext, type WorkScope } from "./work-context.ts";

/** The outcome of a skipped request: it is not retried before something changes. */
const skipped: Outcome = { kind: "done" };

/** The options of a reconciler. */
export interface ReconcilerOptions {
	readonly scope: WorkScope;
	/** Which keys may be reconciled, if the controller is sharded. */
	readonly gate: ShardGate | undefined;
	readonly cache: Cache;
	readonly ownWrites: OwnWrites;
	readonly undecodable: Pick<UndecodableResources, "note">;
	/** Whether a queued change can be mapped without waiting for anything. */
	readonly isMapping: () => boolean;
}

/** Options of a request of a mapper. */
export interface RequestOptions {
	readonly shards?: ReadonlySet<number> | undefined;
	readonly writes?: readonly (string | undefined)[];
}

/** That something else than a write requests a resource. */
const notWritten = [undefined] as const;

/**
 * The queue of requests of a run, and the calls of the controller's `reconcile` for them. Requests of mappers
 * are held until their burst is over (request-bursts.ts). A request is held while the cache does not contain
 * its own writes (own-writes.ts). A request for a resource that can't be decoded is skipped (undecodable.ts), and one
 * for a resource of a shard that the run may not work on is dropped (shard-gate.ts).
 *
 * Invariant: no key in the queue is that of a copy of another region's resource. Each is added by `enqueue` or `request`.
 */
export class Reconciler {
	readonly #scope: WorkScope;
	readonly #gate: ShardGate | undefined;
	readonly #cache: Cache;
	readonly #views: { readonly cache: ReturnType<typeof cloningView>; readonly shared: Cache };
	readonly #ownWrites: OwnWrites;
	readonly #undecodable: Pick<UndecodableResources, "note">;
	readonly #pool: WorkerPool<ID>;
	readonly #bursts: RequestBursts;
	readonly #causes: RequestCauses;

	constructor({ scope, gate, cache, ownWrites, undecodable, isMapping }: ReconcilerOptions) {
		this.#causes = new RequestCauses(scope.environment.chains);
		const { controller, runtime, logger, tally } = scope.environment;
		this.#scope = scope;
		this.#gate = gate;
		this.#cache = cache;
		this.#views = { cache: cloningView(cache), shared: cache };
		this.#ownWrites = ownWrites;
		this.#undecodable = undecodable;
		this.#pool = new WorkerPool<ID>({
			runtime,
			backoff: controller.backoff,
			concurrency: controller.concurrency,
			reportAfterMs: controller.slowReconcileMs,
			timeLimitMs: controller.reconcileTimeoutMs,
			merge: newestId,
			mustWait: (key) => ownWrites.mustWait(key),
			work: (id, task) => {
				const workScope = gate === undefined ? scope : gate.scopeOf(task.key);
				return workScope !== undefined && this.#canBeReconciled(id)
					? this.#reconcile(id, task, workScope)
					: skipped;
			},
			onFailure: ({ key, error, failures, delayMs }) => {
				const message = messageOf(error);
				tally.failed({ key, message, atMs: runtime.clock.now() });
				this.#warn(key, "ReconcileFailed", message);
				logger.warn(
					{ key, err: error, failures, delayMs: Math.round(delayMs) },
					"reconcile failed",
				);
			},
			onStillRunning: ({ key, runningMs }) => {
				const limitMs = controller.reconcileTimeoutMs;
				logger.warn(
					{ key, runningMs: Math.round(runningMs), limitMs },
					"reconcile is still running",
				);
			},
			onOverdue: (key) => {
				tally.overdue();
				const limitMs = controller.reconcileTimeoutMs;
				logger.error({ key, limitMs }, "reconcile exceeded its time limit and was aborted");
				const message = `the reconcile exceeded its time limit of ${limitMs / 1_000} s and was aborted; it has not ended yet`;
				this.#warn(key, "ReconcileOverdue", message);
			},
		});
		this.#bursts = new RequestBursts({
			scheduler: runtime.scheduler,
			isMapping,
			release: (key) => this.#pool.release(key),
		});
	}

	/** The worker pool; use `enqueue` and `request` to add to it, and `drop` to remove from it. */
	get pool(): Omit<WorkerPool<ID>, "add" | "drop" | "gather" | "lock" | "release"> {
		return this.#pool;
	}

	/**
	 * Queues a managed resource.
	 *
	 * @param write - the version of the write that requests that, if it is one.
	 * @throws Error if it is a copy: nothing here can write it.
	 */
	enqueue(id: ID, priority: Priority, write?: string): void {
		if (id.region) {
			throw new Error(`${displayName(id)} is a copy, and is not reconciled here`);
		}
		const key = nameKey(id);
		if (this.#admits(key)) {
			if (priority === "live") {
				this.#causes.add(key, write);
			}
			this.#pool.add(key, id, priority);
		} else {
			this.#gate?.refuse(key, id);
		}
	}

	/**
	 * Queues a request of a mapper, until the end of its burst, and fills in the units of tenancy that it omits. If
	 * shards are given, only a resource in one of them is queued.
	 *
	 * @param options - `writes` are the versions of the writes of a watched resource that request that, if it is such.
	 */
	request(id: ID, priority: Priority, { shards, writes = notWritten }: RequestOptions = {}): void {
		const { controller, logger, tally } = this.#scope.environment;
		const { manages } = controller;
		const isManaged = id.type !== undefined && familyKey(id.type) === manages.family;
		if (!isManaged || id.region) {
			tally.dropped();
			logger.warn(
				{ request: displayName(id), manages: manages.key },
				isManaged
					? "dropped a request for a copy of another region's resource"
					: "dropped a request for a type other than the managed one",
			);
			return;
		}
		const requested = idOf(manages, id.name, id.tenancy, id.uid);
		const key = nameKey(requested);
		if (shards !== undefined && !shards.has(shardOf(key))) {
			return;
		}
		if (!this.#admits(key)) {
			this.#gate?.refuse(key, requested);
			return;
		}
		if (priority === "live") {
			for (const write of writes) {
				this.#causes.add(key, write);
			}
		}
		if (this.#pool.gather(key, requested, priority)) {
			this.#bursts.add(key);
		}
	}

	#admits(key: string): boolean {
		return this.#gate === undefined || this.#gate.admits(key);
	}

	/** Drops the queued requests for the keys that match. */
	drop(matches: (key: string) => boolean): void {
		this.#causes.drop(matches);
		this.#pool.drop(matches);
	}

	/** The cache contains all writes of the key. */
	release(key: string): void {
		this.#pool.release(key);
	}

	/** Locks a key until the work of an earlier run on it has ended. */
	lock(key: string, until: Promise<void>): void {
		const { manages } = this.#scope.environment.controller;
		this.#pool.lock(key, idOf(manages, ""), until);
	}

	/**
	 * Whether the cached resource, if any, can be decoded. Otherwise it is not reconciled: its desired state
	 * is unknown, and it is not deleted. Its next version is enqueued again. What an import has created around copies of
	 * another cluster is not reconciled either: nothing here can write it.
	 */
	#canBeReconciled(id: ID): boolean {
		const { manages } = this.#scope.environment.controller;
		try {
			const cached = this.#cache.get(manages, id);
			if (cached?.resource.origin !== undefined) {
				return false;
			}
			void cached?.data;
			return true;
		} catch (error) {
			if (error instanceof DecodeError) {
				this.#undecodable.note(manages, id, error);
				return false;
			}
			throw error;
		}
	}

	async #reconcile(queued: ID, task: Task, scope: WorkScope): Promise<Outcome> {
		const { controller, runtime, tally, chains, onEndlessChain } = scope.environment;
		const startedMs = runtime.clock.monotonic();
		let outcome: "succeeded" | "failed" = "failed";
		const cause = this.#causes.take(task.key);
		const id = this.#newest(queued);
		const onWritten = (family: string, version: string) => {
			this.#ownWrites.note(task.key, family, version);
			const endless = chains.wrote(task.key, version, cause);
			if (endless !== undefined) {
				onEndlessChain(endless);
			}
		};
		const context = new WorkContext(scope, task, this.#views, onWritten, id);
		try {
			const requeue = await controller.reconcile(context, { id });
			// Not every `Requeue` comes from `requeueAfter`, and a delay that is no number would stop all delayed keys.
			const delayMs = requeue ? requeueAfter(requeue.afterMs).afterMs : undefined;
			outcome = task.stage === "overdue" ? "failed" : "succeeded";
			return delayMs === undefined ? { kind: "done" } : { kind: "again", delayMs };
		} finally {
			await context.client.close();
			tally.ended(outcome, runtime.clock.monotonic() - startedMs);
		}
	}

	/** Records what has gone wrong with a resource, by its key. */
	#warn(key: string, reason: string, message: string): void {
		const { controller, events } = this.#scope.environment;
		const [, partition = "", namespace = "", name = ""] = key.split("/");
		const resource = this.#newest(idOf(controller.manages, name, { partition, namespace }));
		events.record({ resource, reason, message, severity: "warning", source: controller.name });
	}

	/** The ID for the reconcile: of the cached incarnation or, if none, of the newest requested one. */
	#newest(queued: ID): ID {
		const { manages } = this.#scope.environment.controller;
		const cached = this.#cache.get(manages, queued)?.resource.id;
		return cached === undefined ? cloneID(queued) : cloneID(cached);
	}
}

/** Uids are ULIDs, so a later one is greater. Of equal uids, the later request wins. */
function newestId(earlier: ID, later: ID): ID {
	return later.uid >= earlier.uid ? later : earlier;
}
