/**
 * A resource of this deployment that is being deleted for good, until all who hold it have let go.
 *
 *     DELETING ──ask all that hold it──┬─ some hold it still ─▶ note who, ask again later
 *                                      └─ "no": drop it ──┬─ others are left ─▶ ask again
 *                                                         └─ none is left ─▶ release
 *     release: remove the references' finalizer; where it is the last one, the resource with it, its
 *              shadow too, and write its tombstone: all in one commit.
 *
 * To ask is to tell: whoever is asked about a resource in DELETING deletes what cascades, and clears what
 * is unset. Every drop replaces the very shadow that was read before the question.
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
import { keyOfShadow } from "../commit-plan.ts";
import { isConflict } from "../conflict.ts";
import type { ConstraintContext } from "../constraint-context.ts";
import { type HolderQuery, type HolderResponse, isReleased } from "../holder-query.ts";
import { condition, withCondition } from "../reported-status.ts";
import { nameOfKey } from "../resource-key.ts";
import { displayDeployed, isHeld, referencesFinalizer, withoutDeployment } from "../shadow.ts";
import { lookup, readShadow, recordId, type StoredShadow } from "../shadow-records.ts";
import { replaceShadow } from "../shadow-update.ts";
import { done, type PassResult } from "./pass-result.ts";

/** See the head of this file. */
export class OwnedDeletingHandler {
	readonly #context: ConstraintContext;
	readonly #holderQuery: HolderQuery;
	/**
	 * How soon each deletion may ask again, by shadow, on the monotonic clock. What it notes changes the
	 * shadow, and every change brings another pass about: answers that alternate would go in circles.
	 */
	readonly #pace = new Map<string, { readonly backoff: Backoff; readonly nextMs: number }>();

	constructor(context: ConstraintContext, holderQuery: HolderQuery) {
		this.#context = context;
		this.#holderQuery = holderQuery;
	}

	/** One pass over a shadow, by its name. */
	async handle(name: string): Promise<PassResult> {
		const stored = await readShadow(this.#context.backend, name);
		if (stored?.shadow.lifecycle !== Lifecycle.DELETING) {
			this.#pace.delete(name);
			return done;
		}
		return isHeld(stored.shadow) ? this.#ask(stored) : this.#release(stored);
	}

	/** Somebody may have let go: the next pass asks at once. */
	hint(name: string): void {
		this.#pace.delete(name);
	}

	async #ask(stored: StoredShadow): Promise<PassResult> {
		const { limits, runtime } = this.#context;
		const pace = this.#pace.get(stored.name);
		const waitMs = (pace?.nextMs ?? 0) - runtime.clock.monotonic();
		if (waitMs > 0) {
			return { requeueAfterMs: waitMs };
		}
		const answers = await this.#holderQuery.all(stored, { deleting: true });
		const gone = answers.filter(isReleased);
		const waitingFor = answers.filter((answer) => !isReleased(answer)).map(reasonOf);
		const left = gone.reduce(
			(shadow, { deployment }) => withoutDeployment(shadow, deployment.uid),
			stored.shadow,
		);
		const next = withProgress(left, waitingFor, gone.length);
		if (next !== stored.shadow) {
			const report = await this.#report(stored, waitingFor);
			const replaced = await replaceShadow(this.#context, stored, next, report).catch((failure) => {
				if (!(failure instanceof Exhausted)) {
					throw failure;
				}
				// Where there is no room to say what it waits for, it goes on all the same.
				return left === stored.shadow ? stored : replaceShadow(this.#context, stored, left);
			});
			if (replaced === "conflict") {
				return { requeueAfterMs: limits.pauseMs };
			}
			if (!isHeld(next)) {
				return { requeueAfterMs: 0 };
			}
		}
		const { requeryMs } = limits;
		const backoff =
			pace?.backoff ??
			new Backoff({ clock: runtime.clock, baseMs: requeryMs / 20, maxMs: requeryMs });
		const pauseMs = backoff.nextDelayMs();
		this.#pace.set(stored.name, { backoff, nextMs: runtime.clock.monotonic() + pauseMs });
		return { requeueAfterMs: pauseMs };
	}

	/** The resource says what its deletion waits for. */
	async #report(stored: StoredShadow, waitingFor: readonly string[]): Promise<Mutation[]> {
		const { backend, runtime } = this.#context;
		const resource = await lookup(backend, nameOfKey(keyOfShadow(stored.shadow)));
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

	async #release(stored: StoredShadow): Promise<PassResult> {
		const { backend, runtime } = this.#context;
		const resource = await lookup(backend, nameOfKey(keyOfShadow(stored.shadow)));
		const shadowGone: Mutation = {
			op: "delete",
			id: { ...recordId(stored.name), uid: stored.resource.id?.uid ?? "" },
			expectedVersion: stored.version,
		};
		const mutations: Mutation[] = [];
		if (resource === undefined || resource.id?.uid !== stored.shadow.uid) {
			mutations.push(shadowGone);
		} else if (!hasFinalizer(resource, referencesFinalizer)) {
			// It waits for finalizers of others, whose removal takes the shadow along.
			return done;
		} else if (finalizersOf(resource).every((each) => each === referencesFinalizer)) {
			mutations.push(...deletionWithTombstone(runtime, resource), shadowGone);
		} else {
			const released = {
				...resource,
				metadata: { ...resource.metadata },
				generation: newUlid(runtime),
			};
			removeFinalizer(released, referencesFinalizer);
			mutations.push(
				{ op: "put", resource: released, expectedVersion: resource.version },
				{ op: "assert", id: shadowGone.id, expectedVersion: stored.version },
			);
		}
		try {
			await backend.commit(mutations);
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return { requeueAfterMs: this.#context.limits.pauseMs };
			}
			throw failure;
		}
	}
}

function reasonOf(answer: HolderResponse): string {
	const where = displayDeployed(answer.deployment);
	return answer.kind === "unknown"
		? `${where} can't be asked: ${answer.why}`
		: `${where} still references it`;
}

/** The same object where nothing has changed. */
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
