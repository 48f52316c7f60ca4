import {
	type Controller,
	defineController,
	type Requeue,
	requeueAfter,
	watchEvents,
} from "@plinth/controller";
import {
	Lifecycle,
	type Shadow,
	type Source,
	type Task,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import type { Constraints } from "../node/constraints.ts";
import { holders, shadowName } from "../shadow/shadow.ts";
import { ResourceShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";
import { DeletionInbox } from "./deletion-inbox.ts";
import { type HandlerResult, soonest } from "./handler-result.ts";
import { NameQueue } from "./name-queue.ts";
import { ownerDeployment } from "./owner-deployments.ts";
import { ShadowHandlers } from "./shadow-handlers.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** The number of concurrent passes, in total and per deployment. They mostly wait for responses. */
const passes = { total: 1_000, perDeployment: 100 } as const;

/** Options of `createDbConstraintController`. */
export interface DbConstraintOptions {
	/** Identifies the controller among those of the server. */
	readonly name: string;
	readonly constraints: Constraints;
	/**
	 * Called when the controller starts to accept deletions, with the function that accepts them. The
	 * returned function is called when it stops.
	 */
	readonly whileRunning: (accept: (deletion: Deletion) => void) => () => void;
}

/**
 * The controller of references. It manages shadows; every other trigger is the name of a shadow in one queue:
 *
 *     shadow changed ─────────────────────────────────────────────────────────┐
 *     deletion received ──▶ inbox, by the name of the target's shadow ─┐      ▼
 *     hint, owner to be checked ───────────────────────────────────────┼─▶ names ─▶ reconcile ─▶ limiter ─▶ handlers
 *     free slot of the limiter ────────────────────────────────────────┘                           └─▶ parked
 *
 * The target of a deletion may be stored by another deployment. Then this deployment has no shadow of that
 * name, but its work is keyed by the name, so that each target is handled by one pass at a time.
 */
export function createDbConstraintController(options: DbConstraintOptions): Controller {
	const reconciler = new ShadowReconciler(options.constraints);
	return defineController({
		name: options.name,
		manages: ResourceShadow,
		concurrency: passes.total,
		backoff: { baseMs: 50, maxMs: 10_000 },
		watches: [
			watchEvents("references", {
				async *source({ signal }) {
					const stop = reconciler.listen(options.whileRunning);
					try {
						for await (const name of reconciler.names(signal)) {
							yield { key: name, event: name };
						}
					} finally {
						stop();
					}
				},
				map: (_context, name) => [recordId(name)],
			}),
		],
		reconcile: (_context, { id }) => reconciler.reconcile(id.name),
	});
}

/** Collects what triggers passes over shadows, and runs the passes. */
class ShadowReconciler {
	readonly #constraints: Constraints;
	readonly #inbox = new DeletionInbox();
	readonly #names = new NameQueue();
	readonly #limiter = new ConcurrencyLimiter(passes.perDeployment, (name) => this.#names.put(name));
	readonly #handlers: ShadowHandlers;

	constructor(constraints: Constraints) {
		this.#constraints = constraints;
		const { context, holderQuery, store } = constraints;
		const queue = (name: string) => this.#names.put(name);
		this.#handlers = new ShadowHandlers({ context, holderQuery, store, queue });
	}

	/** The names of the shadows to reconcile, until the signal aborts. */
	names(signal: AbortSignal): AsyncIterable<string> {
		return this.#names.names(signal);
	}

	/** Accepts triggers until the returned function is called. */
	listen(whileRunning: DbConstraintOptions["whileRunning"]): () => void {
		const { context, hints } = this.#constraints;
		const accept = (deletion: Deletion) => this.#accept(deletion);
		const stops = [
			context.index.onChange((stored, change) => {
				if (change === "stored") {
					this.#acceptOwn(stored);
				}
			}),
			context.index.onReleased((target) => this.#released(shadowName(target))),
			hints.addListener({
				queryHolderSoon: (shadow, deploymentUid) => {
					this.#handlers.hint(shadow, deploymentUid);
					this.#names.put(shadow);
					this.#released(shadow);
				},
				deleting: (deploymentUid, target, targetUid) =>
					accept({ deploymentUid, target, targetUid }),
			}),
			this.#handlers.followEnvironment(),
			whileRunning(accept),
		];
		for (const stored of context.index.all()) {
			this.#acceptOwn(stored);
		}
		return () => {
			for (const stop of stops) {
				stop();
			}
		};
	}

	/** One pass over a shadow, unless the deployments that it depends on have no free slots. */
	async reconcile(name: string): Promise<Requeue | undefined> {
		const { context } = this.#constraints;
		const deletions = this.#inbox.of(name);
		const shadow = context.index.get(name)?.shadow;
		const release = this.#limiter.tryAcquire(name, awaitedDeployments(context, shadow, deletions));
		if (release === undefined) {
			// The limiter names it once a slot is free. The delay covers a slot that another pass took first.
			return requeueAfter(context.limits.requeryMs);
		}
		try {
			const { requeueAfterMs } = await this.#pass(name, deletions);
			// Whole milliseconds: after a difference of two times that are almost the same, no time would pass.
			return requeueAfterMs === undefined ? undefined : requeueAfter(Math.ceil(requeueAfterMs));
		} finally {
			release();
		}
	}

	async #pass(name: string, deletions: readonly Deletion[]): Promise<HandlerResult> {
		const results = [await this.#handlers.handleShadow(name)];
		if (isPlanted("forget when a shadow is due again")) {
			results.length = 0;
		}
		const failures: unknown[] = [];
		for (const deletion of deletions) {
			try {
				results.push(await this.#passDeletion(deletion));
			} catch (failure) {
				// It must not affect the others.
				failures.push(failure);
			}
		}
		if (failures.length > 0) {
			throw failures[0];
		}
		return soonest(...results);
	}

	/** Applies a deletion, unless it is not due yet. */
	async #passDeletion(deletion: Deletion): Promise<HandlerResult> {
		const { runtime, limits } = this.#constraints.context;
		const waitMs = this.#inbox.dueMs(deletion) - runtime.clock.monotonic();
		if (waitMs > 0 && !isPlanted("retry a waiting deletion with each change of its name")) {
			return { requeueAfterMs: waitMs };
		}
		// Also if it fails: then the controller retries with backoff, but not before.
		this.#inbox.delay(deletion, runtime.clock.monotonic() + limits.maxRetryDelayMs);
		const result = await this.#handlers.handleDeletion(deletion);
		if (result.requeueAfterMs === undefined) {
			this.#inbox.remove(deletion);
		} else {
			this.#inbox.delay(deletion, runtime.clock.monotonic() + result.requeueAfterMs);
		}
		return result;
	}

	/**
	 * Something no longer references the resource with this shadow. Continues deletions that may have waited for that: of
	 * the resource itself, and of what it references, if they are to delete the resource, and it could not be.
	 */
	#released(name: string): void {
		const { index } = this.#constraints.context;
		const shadow = index.get(name)?.shadow;
		if (shadow?.lifecycle === Lifecycle.DELETING) {
			this.#handlers.hastenShadow(name);
			this.#names.put(name);
		}
		this.#hastenDeletions(name);
		for (const { target } of shadow?.outgoing ?? []) {
			if (target !== undefined) {
				this.#hastenDeletions(shadowName(target));
			}
		}
	}

	#hastenDeletions(name: string): void {
		if (!this.#inbox.has(name)) {
			return;
		}
		const { runtime, limits } = this.#constraints.context;
		this.#inbox.hasten(name, runtime.clock.monotonic() + limits.maxRetryDelayMs);
		for (const deletion of this.#inbox.of(name)) {
			this.#handlers.hastenDeletion(deletion);
		}
		this.#names.put(name);
	}

	#accept(deletion: Deletion): void {
		if (
			isPlanted("accept the deletions of this deployment alone") &&
			deletion.deploymentUid !== this.#constraints.context.environment.self.uid
		) {
			return;
		}
		const name = this.#inbox.add(deletion);
		if (name !== undefined) {
			this.#names.put(name);
		}
	}

	#acceptOwn({ shadow }: StoredShadow): void {
		if (shadow.lifecycle === Lifecycle.DELETING && shadow.resource !== undefined) {
			const { uid } = this.#constraints.context.environment.self;
			this.#accept({ deploymentUid: uid, target: shadow.resource, targetUid: shadow.uid });
		}
	}
}

/** The deployments, by uid, whose responses a pass may wait for; this deployment if there are none. */
function awaitedDeployments(
	context: Constraints["context"],
	shadow: Shadow | undefined,
	deletions: readonly Deletion[],
): ReadonlySet<string> {
	const uids = new Set(deletions.map(({ deploymentUid }) => deploymentUid));
	if (shadow !== undefined) {
		// A deletion waits for all holders of the resource, and for none of its tasks.
		const queried =
			shadow.lifecycle === Lifecycle.DELETING
				? holders(shadow)
				: [...shadow.sources.flatMap(tentativeHolder), ...shadow.tasks.flatMap(confirmingHolder)];
		for (const { uid } of queried) {
			uids.add(uid);
		}
		for (const each of shadow.metaOwners) {
			if (each.owner !== undefined) {
				uids.add(ownerDeployment(context, each)?.uid ?? "");
			}
		}
	}
	return uids.size === 0 ? new Set([context.environment.self.uid]) : uids;
}

function tentativeHolder({ deployment, tentative }: Source) {
	return tentative && deployment !== undefined ? [deployment] : [];
}

function confirmingHolder({ task }: Task) {
	return task.case === "confirm" && task.value.deployment !== undefined
		? [task.value.deployment]
		: [];
}
