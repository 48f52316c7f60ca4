import { type Cache, cloning } from "@plinth/cache";
import { cloneID, type ID } from "@plinth/proto";
import { displayName, familyKey, idOf, nameKey } from "@plinth/resource";
import type { Priority } from "../queue/queue-entry.ts";
import type { Task } from "../queue/task.ts";
import { type Outcome, WorkerPool } from "../queue/worker-pool.ts";
import type { OwnWrites } from "./own-writes.ts";
import { WorkContext, type WorkScope } from "./work-context.ts";

/** What has come of the reconciles of a run. */
export interface ReconcileCounts {
	readonly succeeded: number;
	readonly failed: number;
	/** Passed the time limit; what comes of them in the end counts as well. */
	readonly overdue: number;
	/** Requests for another type than the managed one. */
	readonly dropped: number;
}

/** What a reconciler is made with. */
export interface ReconcilerOptions {
	readonly scope: WorkScope;
	readonly cache: Cache;
	readonly ownWrites: OwnWrites;
}

/**
 * The requests of a run, and the calls of the controller's `reconcile` for them. A request is held
 * while the cache has not seen what was written for it (own-writes.ts).
 */
export class Reconciler {
	readonly #scope: WorkScope;
	readonly #cache: Cache;
	readonly #views: { readonly cache: ReturnType<typeof cloning>; readonly shared: Cache };
	readonly #ownWrites: OwnWrites;
	readonly #pool: WorkerPool<ID>;
	#succeeded = 0;
	#failed = 0;
	#overdue = 0;
	#dropped = 0;

	constructor({ scope, cache, ownWrites }: ReconcilerOptions) {
		const { controller, runtime, logger } = scope.environment;
		this.#scope = scope;
		this.#cache = cache;
		this.#views = { cache: cloning(cache), shared: cache };
		this.#ownWrites = ownWrites;
		this.#pool = new WorkerPool<ID>({
			runtime,
			backoff: controller.backoff,
			concurrency: controller.concurrency,
			timeLimitMs: controller.reconcileLimitMs,
			merge: newestId,
			mustWait: (key) => ownWrites.mustWait(key),
			work: (id, task) => this.#reconcile(id, task),
			onFailure: ({ key, error, failures, delayMs }) => {
				this.#failed += 1;
				logger.warn({ key, err: error, failures, delayMs }, "reconcile failed");
			},
			onOverdue: (key) => {
				this.#overdue += 1;
				const limitMs = controller.reconcileLimitMs;
				logger.error({ key, limitMs }, "reconcile passed its time limit");
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
		const { manages } = this.#scope.environment.controller;
		if (id.type === undefined || familyKey(id.type) !== manages.family) {
			this.#dropped += 1;
			this.#scope.environment.logger.warn(
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

	counts(): ReconcileCounts {
		return {
			succeeded: this.#succeeded,
			failed: this.#failed,
			overdue: this.#overdue,
			dropped: this.#dropped,
		};
	}

	async #reconcile(queued: ID, task: Task): Promise<Outcome> {
		const { controller } = this.#scope.environment;
		const context = new WorkContext(this.#scope, task, this.#views, (family, version) =>
			this.#ownWrites.note(task.key, family, version),
		);
		try {
			const requeue = await controller.reconcile(context, { id: this.#newest(queued) });
			this.#succeeded += 1;
			return requeue ? { kind: "again", delayMs: requeue.afterMs } : { kind: "done" };
		} finally {
			await context.client.close();
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
