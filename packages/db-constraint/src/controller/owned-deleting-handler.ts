/**
 * Completes the irrevocable deletion of a resource of this deployment, once all holders have released it.
 *
 *     DELETING ──query all holders──┬─ some still hold it ─▶ report them, query again later
 *                                   └─ "no": drop the holder ──┬─ holders are left ─▶ query again
 *                                                              └─ none is left ─▶ release
 *     release: remove the references' finalizer. If it is the last one, delete the resource and its shadow
 *              and write its tombstone, in one commit.
 *
 * The query also announces the deletion: a holder that is queried about a resource in DELETING deletes the
 * resources that cascade, and clears UNSET references. Every drop replaces exactly the shadow that was read
 * before the query.
 */

import { create } from "@bufbuild/protobuf";
import {
	DeletionProgressSchema,
	Lifecycle,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, hasFinalizer, newUlid, removeFinalizer } from "@plinth/resource";
import { deletionWithTombstone } from "@plinth/resource-service";
import { Backoff } from "@plinth/runtime";
import { Exhausted, type Mutation } from "@plinth/storage";
import { keyOfShadow } from "../commit/commit-plan.ts";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { type HolderQuery, type HolderResponse, isReleased } from "../protocol/holder-query.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import {
	displayDeployed,
	isHeld,
	referencesFinalizer,
	withoutDeployment,
} from "../shadow/shadow.ts";
import { readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { afterConflict, done, type HandlerResult } from "./handler-result.ts";
import { condition, withCondition } from "./reported-status.ts";

/** See the comment at the top of this file. */
export class OwnedDeletingHandler {
	readonly #context: ConstraintContext;
	readonly #holderQuery: HolderQuery;
	/**
	 * When each deletion may query again, by shadow, on the monotonic clock. The report changes the shadow, and
	 * each change triggers another pass: alternating responses would repeat it without a pause.
	 */
	readonly #pace = new Map<string, { readonly backoff: Backoff; readonly nextMs: number }>();

	constructor(context: ConstraintContext, holderQuery: HolderQuery) {
		this.#context = context;
		this.#holderQuery = holderQuery;
	}

	/** One pass over a shadow, by its name. */
	async handle(name: string): Promise<HandlerResult> {
		const stored = await readShadow(this.#context.backend, name);
		if (stored?.shadow.lifecycle !== Lifecycle.DELETING) {
			this.#pace.delete(name);
			return done;
		}
		return isHeld(stored.shadow) ? this.#query(stored) : this.#release(stored);
	}

	/**
	 * A holder may have released the resource: the next pass queries at once. If a query is in progress, the holder may have
	 * responded before it has released it: so the pass that waits for the response is followed by another one at once.
	 */
	hint(name: string): void {
		this.#pace.delete(name);
	}

	/** A resource of this deployment may have released it: the next pass queries soon. */
	hasten(name: string): void {
		const pace = this.#pace.get(name);
		if (pace !== undefined) {
			const { limits, runtime } = this.#context;
			const soonMs = runtime.clock.monotonic() + limits.requeryMs / soonShare;
			pace.backoff.reset();
			this.#pace.set(name, { ...pace, nextMs: Math.min(pace.nextMs, soonMs) });
		}
	}

	async #query(stored: StoredShadow): Promise<HandlerResult> {
		const { limits, runtime } = this.#context;
		const pace = this.#pace.get(stored.name);
		const waitMs = (pace?.nextMs ?? 0) - runtime.clock.monotonic();
		if (waitMs > 0) {
			return { requeueAfterMs: waitMs };
		}
		const responses = await this.#holderQuery.all(stored, { deleting: true });
		const released = responses.filter(isReleased);
		const waitingFor = responses.filter((response) => !isReleased(response)).map(reasonOf);
		const left = released.reduce(
			(shadow, { deployment }) => withoutDeployment(shadow, deployment.uid),
			stored.shadow,
		);
		const next = withProgress(left, waitingFor, released.length);
		if (next !== stored.shadow) {
			const report = await this.#report(stored, waitingFor);
			const replaced = await replaceShadow(this.#context, stored, next, report).catch((failure) => {
				if (!(failure instanceof Exhausted)) {
					throw failure;
				}
				// Without room for the report, the deletion still progresses.
				return left === stored.shadow ? stored : replaceShadow(this.#context, stored, left);
			});
			if (replaced === "conflict") {
				return { requeueAfterMs: limits.maxRetryDelayMs };
			}
			if (!isHeld(next)) {
				return { requeueAfterMs: 0 };
			}
		}
		const isHinted = pace !== undefined && !this.#pace.has(stored.name);
		if (isHinted && !isPlanted("forget a report of a release during a query")) {
			return { requeueAfterMs: 0 };
		}
		const { requeryMs, maxRequeryMs } = limits;
		const backoff =
			pace?.backoff ??
			new Backoff({ clock: runtime.clock, baseMs: requeryMs / soonShare, maxMs: maxRequeryMs });
		const pauseMs = backoff.nextDelayMs();
		this.#pace.set(stored.name, { backoff, nextMs: runtime.clock.monotonic() + pauseMs });
		return { requeueAfterMs: pauseMs };
	}

	/** The mutation that reports in the status of the resource what its deletion waits for. */
	async #report(stored: StoredShadow, waitingFor: readonly string[]): Promise<Mutation[]> {
		const { backend, runtime } = this.#context;
		const resource = await backend.lookup(nameOfKey(keyOfShadow(stored.shadow)));
		if (resource === undefined || resource.id?.uid !== stored.shadow.uid) {
			return [];
		}
		const message = waitingFor.join("; ");
		const next = withCondition(
			resource,
			condition("ReferencesReleased", waitingFor.length === 0, message),
			runtime.clock,
		);
		return next === undefined
			? []
			: [{ op: "put", resource: next, expectedVersion: resource.version }];
	}

	async #release(stored: StoredShadow): Promise<HandlerResult> {
		const { backend, runtime } = this.#context;
		const resource = await backend.lookup(nameOfKey(keyOfShadow(stored.shadow)));
		const deleteShadow: Mutation = {
			op: "delete",
			id: { ...recordId(stored.name), uid: stored.resource.id?.uid ?? "" },
			expectedVersion: stored.version,
		};
		const mutations: Mutation[] = [];
		if (resource === undefined || resource.id?.uid !== stored.shadow.uid) {
			mutations.push(deleteShadow);
		} else if (!hasFinalizer(resource, referencesFinalizer)) {
			// It waits for other finalizers. The commit that removes the last one also deletes the shadow.
			return done;
		} else if (finalizersOf(resource).every((each) => each === referencesFinalizer)) {
			mutations.push(...deletionWithTombstone(runtime, resource), deleteShadow);
		} else {
			const released = {
				...resource,
				metadata: { ...resource.metadata },
				generation: newUlid(runtime),
			};
			removeFinalizer(released, referencesFinalizer);
			mutations.push(
				{ op: "put", resource: released, expectedVersion: resource.version },
				{ op: "assert", id: deleteShadow.id, expectedVersion: stored.version },
			);
		}
		try {
			await backend.commit(mutations);
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return afterConflict(this.#context.limits);
			}
			throw failure;
		}
	}
}

/** The first interval between two queries, as a share of `requeryMs`. */
const soonShare = 20;

function reasonOf(response: HolderResponse): string {
	const where = displayDeployed(response.deployment);
	return response.kind === "unknown"
		? `${where} can't be queried: ${response.reason}`
		: `${where} still references it`;
}

/** Returns the same object if nothing has changed. */
function withProgress(shadow: Shadow, waitingFor: readonly string[], released: number): Shadow {
	const before = shadow.progress;
	const isSame =
		released === 0 &&
		(before?.waitingFor.length ?? 0) === waitingFor.length &&
		waitingFor.every((reason, i) => reason === before?.waitingFor[i]);
	return isSame
		? shadow
		: {
				...shadow,
				progress: create(DeletionProgressSchema, {
					waitingFor: [...waitingFor],
					released: (before?.released ?? 0n) + BigInt(released),
				}),
			};
}
