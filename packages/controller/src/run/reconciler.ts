import { type Cache, cloning } from "@plinth/cache";
import { cloneID, type ID } from "@plinth/proto";
import { DecodeError, displayName, familyKey, idOf, nameKey } from "@plinth/resource";
import type { Priority } from "../queue/queue-entry.ts";
import type { Task } from "../queue/task.ts";
import { type Outcome, WorkerPool } from "../queue/worker-pool.ts";
import type { OwnWrites } from "./own-writes.ts";
import type { UndecodableResources } from "./undecodable.ts";
import { WorkContext, type WorkScope } from "./work-context.ts";

/** What comes of a request that is not reconciled: it is not tried again before something changes. */
const skipped: Outcome = { kind: "done" };

/** What a reconciler is made with. */
export interface ReconcilerOptions {
	readonly scope: WorkScope;
	readonly cache: Cache;
	readonly ownWrites: OwnWrites;
	readonly undecodable: Pick<UndecodableResources, "note">;
}

/**
 * The requests of a run, and the calls of the controller's `reconcile` for them. A request is held
 * while the cache has not seen what was written for it (own-writes.ts). One whose resource can't be
 * decoded is skipped (undecodable.ts).
 */
export class Reconciler {
	readonly #scope: WorkScope;
	readonly #cache: Cache;
	readonly #views: { readonly cache: ReturnType<typeof cloning>; readonly shared: Cache };
	readonly #ownWrites: OwnWrites;
	readonly #undecodable: Pick<UndecodableResources, "note">;
	readonly #pool: WorkerPool<ID>;

	constructor({ scope, cache, ownWrites, undecodable }: ReconcilerOptions) {
		const { controller, runtime, logger, tally } = scope.environment;
		this.#scope = scope;
		this.#cache = cache;
		this.#views = { cache: cloning(cache), shared: cache };
		this.#ownWrites = ownWrites;
		this.#undecodable = undecodable;
		this.#pool = new WorkerPool<ID>({
			runtime,
			backoff: controller.backoff,
			concurrency: controller.concurrency,
			reportAfterMs: controller.reconcileReportMs,
			timeLimitMs: controller.reconcileLimitMs,
			merge: newestId,
			mustWait: (key) => ownWrites.mustWait(key),
			work: (id, task) => (this.#canBeDecoded(id) ? this.#reconcile(id, task) : skipped),
			onFailure: ({ key, error, failures, delayMs }) => {
				logger.warn({ key, err: error, failures, delayMs }, "reconcile failed");
			},
			onStillRunning: ({ key, runningMs }) => {
				const limitMs = controller.reconcileLimitMs;
				logger.warn(
					{ key, runningMs: Math.round(runningMs), limitMs },
					"reconcile is still running",
				);
			},
			onOverdue: (key) => {
				tally.overdue();
				const limitMs = controller.reconcileLimitMs;
				logger.error({ key, limitMs }, "reconcile passed its time limit and was aborted");
			},
		});
	}

	/** The queue and the work; what goes in comes by `enqueue` and `request`. */
	get pool(): Omit<WorkerPool<ID>, "add" | "lock" | "release"> {
		return this.#pool;
	}

	/** Queues a managed resource. */
	enqueue(id: ID, priority: Priority): void {
		this.#pool.add(nameKey(id), id, priority);
	}

	/** Queues what a mapper asked for, with the units of tenancy that it left out. */
	request(id: ID, priority: Priority): void {
		const { controller, logger, tally } = this.#scope.environment;
		const { manages } = controller;
		if (id.type === undefined || familyKey(id.type) !== manages.family) {
			tally.dropped();
			logger.warn(
				{ request: displayName(id), manages: manages.key },
				"dropped a request for another type than the managed one",
			);
			return;
		}
		this.enqueue(idOf(manages, id.name, id.tenancy, id.uid), priority);
	}

	/** The cache has seen what was written for the key. */
	release(key: string): void {
		this.#pool.release(key);
	}

	/** Leaves a key alone until the work of an earlier run on it has ended. */
	lock(key: string, until: Promise<void>): void {
		const { manages } = this.#scope.environment.controller;
		this.#pool.lock(key, idOf(manages, ""), until);
	}

	/**
	 * Whether the cached resource, if there is one, can be decoded. One that can't is not reconciled: its
	 * desired state is unknown, and it is not deleted. Its next version is queued again.
	 */
	#canBeDecoded(id: ID): boolean {
		const { manages } = this.#scope.environment.controller;
		try {
			void this.#cache.get(manages, id)?.data;
			return true;
		} catch (error) {
			if (error instanceof DecodeError) {
				this.#undecodable.note(manages, id, error);
				return false;
			}
			throw error;
		}
	}

	async #reconcile(queued: ID, task: Task): Promise<Outcome> {
		const { controller, runtime, tally } = this.#scope.environment;
		const startedMs = runtime.clock.monotonic();
		let outcome: "succeeded" | "failed" = "failed";
		const context = new WorkContext(this.#scope, task, this.#views, (family, version) =>
			this.#ownWrites.note(task.key, family, version),
		);
		try {
			const requeue = await controller.reconcile(context, { id: this.#newest(queued) });
			outcome = task.stage === "overdue" ? "failed" : "succeeded";
			return requeue ? { kind: "again", delayMs: requeue.afterMs } : { kind: "done" };
		} finally {
			await context.client.close();
			tally.ended(outcome, runtime.clock.monotonic() - startedMs);
		}
	}

	/** The ID to hand over: of the cached incarnation, or of the newest that was asked for. */
	#newest(queued: ID): ID {
		const { manages } = this.#scope.environment.controller;
		const cached = this.#cache.get(manages, queued)?.resource.id;
		return cached === undefined ? cloneID(queued) : cloneID(cached);
	}
}

/** Uids are ULIDs: the later made is the greater. Of the same the later asked for. */
function newestId(earlier: ID, later: ID): ID {
	return later.uid >= earlier.uid ? later : earlier;
}
