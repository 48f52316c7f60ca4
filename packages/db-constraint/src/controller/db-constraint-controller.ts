import {
	type Controller,
	defineController,
	type Requeue,
	requeueAfter,
	type Share,
	type WorkHold,
	watchEvents,
} from "@plinth/controller";
import {
	Lifecycle,
	type OutgoingReference,
	type Shadow,
	type Source,
	type Task,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { targetPlace } from "../deployments/target-place.ts";
import { isPlanted } from "../fault-points.ts";
import type { Deletion } from "../node/constraint-context.ts";
import type { Constraints } from "../node/constraints.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import { holders, sameTarget, shadowName } from "../shadow/shadow.ts";
import { ResourceShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { ConcernedShadows } from "./concerned-shadows.ts";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";
import { DeletionInbox } from "./deletion-inbox.ts";
import { done, type HandlerResult, soonest } from "./handler-result.ts";
import { NameQueue } from "./name-queue.ts";
import { ownerDeployment } from "./owner-deployments.ts";
import { HandlersOfHolds, type ShadowHandlers } from "./shadow-handlers.ts";

/** The number of concurrent passes. They mostly wait for responses. */
const totalPasses = 1_000;

/** Options of `createDbConstraintController`. */
export interface DbConstraintOptions {
	/** Identifies the controller among those of the server. */
	readonly name: string;
	readonly constraints: Constraints;
	/** Called when a run of the controller accepts deletions, with what it works on. The returned function ends that. */
	readonly whileRunning: (share: Share) => () => void;
}

/** Matches nothing: only the version is of interest. */
const noShadows = {
	type: ResourceShadow.type,
	tenancy: { partition: "", namespace: "" },
	namePrefix: "-",
} as const;

/** All versions of the controller divide the shadows among the servers of a deployment, so that each has one holder. */
const leaseName = "shadows";

/**
 * The controller of references. It runs on all servers of a deployment, each for the shadows of its shards. It manages
 * shadows; every other trigger is the name of a shadow in one queue:
 *
 *     shadow changed ─────────────────────────────────────────────────────────┐
 *     deletion received ──▶ inbox, by the name of the target's shadow ─┐      ▼
 *     hint, owner to be checked ───────────────────────────────────────┼─▶ names ─▶ reconcile ─▶ limiter ─▶ handlers
 *     free slot of the limiter ────────────────────────────────────────┘                           └─▶ parked
 *
 * The target of a deletion may be stored by another deployment. Then this deployment has no shadow of that
 * name, but its work is keyed by the name, so that each target is handled by one pass at a time.
 *
 * Every server knows all deletions, and which states have lasted for how long, whether it holds the shard or not: a server
 * that gains a shard continues where the former holder has stopped.
 */
export function createDbConstraintController(options: DbConstraintOptions): Controller {
	const reconciler = new ShadowReconciler(options.constraints);
	return defineController({
		name: options.name,
		manages: ResourceShadow,
		placement: "sharded",
		leaseName,
		concurrency: totalPasses,
		backoff: { baseMs: 50, maxMs: 10_000 },
		watches: [
			watchEvents("references", {
				async *source({ share, signal }) {
					const stop = reconciler.listen(share, options.whileRunning);
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
		catchUp: (signal) => reconciler.catchUp(signal),
		reconcile: ({ hold }, { id }) => reconciler.reconcile(id.name, hold),
	});
}

/** Collects what triggers passes over shadows, and runs the passes. */
class ShadowReconciler {
	readonly #constraints: Constraints;
	readonly #inbox: DeletionInbox;
	readonly #names = new NameQueue();
	readonly #limiter: ConcurrencyLimiter;
	readonly #handlers: HandlersOfHolds;
	/** What the run works on; absent while none accepts triggers. */
	#share: Share | undefined;

	constructor(constraints: Constraints) {
		this.#constraints = constraints;
		const { passesPerDeployment, deletionsPerDeployment } = constraints.context.limits;
		this.#inbox = new DeletionInbox({
			perDeployment: deletionsPerDeployment,
			isControlled: (name) => this.#handlersOf(name) !== undefined,
			onRemoved: (deletion, name) => this.#handlersOf(name)?.forgetDeletion(deletion),
		});
		this.#limiter = new ConcurrencyLimiter(passesPerDeployment, (name) => this.#names.put(name));
		this.#handlers = new HandlersOfHolds(constraints);
	}

	/** The names of the shadows to reconcile, until the signal aborts. */
	names(signal: AbortSignal): AsyncIterable<string> {
		return this.#names.names(signal);
	}

	/** Accepts triggers until the returned function is called. */
	listen(share: Share, whileRunning: DbConstraintOptions["whileRunning"]): () => void {
		const { context, hints } = this.#constraints;
		this.#share = share;
		this.#inbox.controlChanged();
		const stops = [
			share.onChange(() => this.#inbox.controlChanged()),
			context.index.onChange((stored, change) => {
				if (change === "stored") {
					this.#acceptOwn(stored);
				}
			}),
			context.index.onReleased((target) => {
				this.#forgetUnreferenced(target);
				this.#released(shadowName(target));
			}),
			hints.addListener({
				queryHolderSoon: (shadow, deploymentUid) => this.#hint(shadow, deploymentUid),
				deleting: (deletion) => this.#accept(deletion),
			}),
			new ConcernedShadows(context).follow((name) => {
				this.#handlersOf(name)?.registryChanged(name);
				this.#names.put(name);
			}),
			whileRunning(share),
			() => {
				this.#share = undefined;
				this.#inbox.controlChanged();
			},
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

	/**
	 * Resolves when the index contains all that was committed to shadows before the call. Passes of gained shards read it:
	 * without that, they might miss resources that former holders have left to be cleared or deleted.
	 */
	async catchUp(signal: AbortSignal): Promise<void> {
		const { backend, deletions, environment, index } = this.#constraints.context;
		const { familyVersion } = await backend.snapshot(noShadows, { consistency: "strong" });
		if (!isPlanted("begin passes before the index has caught up")) {
			await index.reached(familyVersion, signal);
		}
		if (isPlanted("ignore what was announced to the former holder")) {
			return;
		}
		// What was announced while another server held these shards.
		for (const { target, targetUid } of deletions.of(environment.self.uid)) {
			this.#accept({ deploymentUid: environment.self.uid, target, targetUid });
		}
		for (const deletion of this.#inbox.all()) {
			this.#accept(deletion);
		}
	}

	/** One pass over a shadow, unless the deployments that it depends on have no free slots. */
	async reconcile(name: string, hold: WorkHold): Promise<Requeue | undefined> {
		const { context } = this.#constraints;
		const deletions = this.#inbox.of(name);
		const shadow = context.index.get(name)?.shadow;
		const release = this.#limiter.tryAcquire(name, awaitedDeployments(context, shadow, deletions));
		if (release === undefined) {
			// The limiter names it once a slot is free. The delay covers a slot that another pass took first.
			return requeueAfter(context.limits.requeryMs);
		}
		try {
			const { requeueAfterMs } = await this.#pass(name, deletions, this.#handlers.of(hold));
			// Whole milliseconds: after a difference of two times that are almost the same, no time would pass.
			return requeueAfterMs === undefined ? undefined : requeueAfter(Math.ceil(requeueAfterMs));
		} finally {
			release();
		}
	}

	async #pass(
		name: string,
		deletions: readonly Deletion[],
		handlers: ShadowHandlers,
	): Promise<HandlerResult> {
		const results: HandlerResult[] = [];
		const failures: unknown[] = [];
		// One that fails must not affect the others. The target of a deletion may be another resource than that of the shadow.
		const attempt = async (pass: () => Promise<HandlerResult>) => {
			try {
				results.push(await pass());
			} catch (failure) {
				failures.push(failure);
			}
		};
		await attempt(() => handlers.handleShadow(name));
		if (isPlanted("forget when a shadow is due again")) {
			results.length = 0;
		}
		if (isPlanted("apply deletions only after the shadow of their name") && failures.length > 0) {
			throw failures[0];
		}
		for (const deletion of deletions) {
			await attempt(async () => {
				let result = await this.#passDeletion(deletion, handlers);
				// Pages that are left would wait for the retry of the pass, which comes later each time.
				while (failures.length > 0 && result.requeueAfterMs === 0) {
					result = await this.#passDeletion(deletion, handlers);
				}
				return result;
			});
		}
		if (failures.length > 0) {
			throw failures[0];
		}
		return soonest(...results);
	}

	/** Applies a deletion, unless it is not due yet. */
	async #passDeletion(deletion: Deletion, handlers: ShadowHandlers): Promise<HandlerResult> {
		const { runtime, limits } = this.#constraints.context;
		const waitMs = this.#inbox.dueMs(deletion) - runtime.clock.monotonic();
		if (waitMs > 0 && !isPlanted("retry a waiting deletion with each change of its name")) {
			return { requeueAfterMs: waitMs };
		}
		// Also if it fails: then the controller retries with backoff, but not before.
		this.#inbox.delay(deletion, runtime.clock.monotonic() + limits.maxRetryDelayMs);
		const result = await handlers.handleDeletion(deletion);
		if (result.requeueAfterMs === undefined || isPlanted("forget deletions that wait")) {
			this.#inbox.remove(deletion);
		} else if (!this.#inbox.delay(deletion, runtime.clock.monotonic() + result.requeueAfterMs)) {
			// It was removed during the pass, which has remembered it again.
			handlers.forgetDeletion(deletion);
			return done;
		}
		return result;
	}

	/**
	 * Something no longer references the resource with this shadow. Continues deletions that may have waited for that: of
	 * the resource itself, also for lack of owners, and of what it references, if they are to delete the resource, and it could
	 * not be.
	 */
	#released(name: string): void {
		const { index } = this.#constraints.context;
		const shadow = index.get(name)?.shadow;
		if (shadow?.lifecycle === Lifecycle.DELETING) {
			this.#handlersOf(name)?.hastenShadow(name);
			this.#names.put(name);
		} else if (this.#handlersOf(name)?.released(name)) {
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
			this.#handlersOf(name)?.hastenDeletion(deletion);
		}
		this.#names.put(name);
	}

	/** The handlers of a shadow that this server controls; `undefined` if another one does. */
	#handlersOf(name: string): ShadowHandlers | undefined {
		const hold = this.#share?.holdOf(recordId(name));
		return hold && this.#handlers.of(hold);
	}

	/** Returns whether this server controls the shadow. */
	#hint(name: string, deploymentUid: string): boolean {
		const handlers = this.#handlersOf(name);
		if (isPlanted("receive no reports of releases")) {
			return handlers !== undefined;
		}
		handlers?.hint(name, deploymentUid);
		this.#names.put(name);
		this.#released(name);
		return handlers !== undefined;
	}

	/**
	 * Accepts a deletion, whichever server controls the name of its target: another one may gain that shard, and has to
	 * continue. Completed deletions are removed by the server that controls the name, and by the others once nothing
	 * references the target.
	 */
	#accept(deletion: Deletion): void {
		const { environment, index } = this.#constraints.context;
		const { deploymentUid, target, targetUid } = deletion;
		if (
			isPlanted("accept the deletions of this deployment alone") &&
			deploymentUid !== environment.self.uid
		) {
			return;
		}
		for (const { name, shadow } of index.ownedBy(target)) {
			if (shadow.metaOwners.some(({ ownerUid }) => ownerUid === targetUid)) {
				this.#handlersOf(name)?.checkOwnersSoon(name, targetUid, deploymentUid);
				this.#names.put(name);
			}
		}
		if (index.referencing(target).next().done) {
			return;
		}
		const name = this.#inbox.add(deletion);
		if (name !== undefined) {
			this.#names.put(name);
		}
	}

	#forgetUnreferenced(target: KeyLike): void {
		if (this.#constraints.context.index.referencing(target).next().done) {
			for (const deletion of this.#inbox.of(shadowName(target))) {
				if (sameTarget(deletion.target, target)) {
					this.#inbox.remove(deletion);
				}
			}
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
				: [
						...shadow.sources.flatMap(tentativeHolder),
						...shadow.tasks.flatMap(confirmingHolder),
						...shadow.outgoing.flatMap((each) => placeOfMissing(context, each)),
					];
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

/** Where a missing target is looked up, if a deployment is known there. */
function placeOfMissing(context: Constraints["context"], reference: OutgoingReference) {
	if (reference.targetUid !== "" || isPlanted("count lookups for the deployment that makes them")) {
		return [];
	}
	const place = targetPlace(context, reference);
	return place.uid === "" ? [] : [place];
}

function tentativeHolder({ deployment, tentative }: Source) {
	return tentative && deployment !== undefined ? [deployment] : [];
}

function confirmingHolder({ task }: Task) {
	return task.case === "confirm" && task.value.deployment !== undefined
		? [task.value.deployment]
		: [];
}
