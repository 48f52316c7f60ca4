/**
 * Applies the irrevocable deletion of a target, stored by any deployment, to the resources of this deployment
 * that reference this incarnation of it:
 *
 *     each resource ──┬─ CASCADE ─▶ delete it, which may wait for other resources, or be refused
 *                     ├─ UNSET ───▶ clear these references, by compare-and-swap
 *                     └─ BLOCK ───▶ leave it; in a tenancy that is being deleted, like CASCADE
 *
 * What the target owns is another matter: the owned-pending handler checks whether the owner is still valid.
 *
 * A deletion counts only if the deployment that announced it is the one that stores the target now. A message of its
 * predecessor, delayed or waiting in memory, is about a state that the restore of its storage has undone: the target may
 * live. Each successor announces its own deletions. The registry view of this server may lack the successor: so each commit
 * asserts that this deployment has not relied on one, nor dropped the deployment that announced the deletion.
 *
 * A refused deletion is retried after growing pauses: meanwhile the resource's own shadow and the responses to holder
 * queries show that it waits. After a conflict the resource is read again soon: when many targets of one resource are
 * deleted together, their passes read the same version of it, and all but one of them meet a conflict.
 */

import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { OutgoingReference, Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import { Backoff, sleep } from "@plinth/runtime";
import { type Mutation, Refused, type StorageBackend } from "@plinth/storage";
import { clearReferences } from "../commit/clear-references.ts";
import { isConflict } from "../commit/conflict.ts";
import { deletion as removalOf } from "../commit/removals.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext, Deletion } from "../node/constraint-context.ts";
import { isDeletionIrrevocable, isInMarkedTenancy } from "../protocol/holder-decision.ts";
import { keyString, nameOfKey } from "../shadow/resource-key.ts";
import { sameTarget, strictest } from "../shadow/shadow.ts";
import { readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { responsibleUid } from "../succession/successors.ts";
import { done, type HandlerResult } from "./handler-result.ts";

/** See the comment at the top of this file. */
export class SubscribedDeletingHandler {
	readonly #context: ConstraintContext;
	/** The storage with its constraints: a cascade is a deletion like any other. */
	readonly #store: StorageBackend;
	/** The rounds that have further pages, by deletion. */
	readonly #rounds = new Map<string, Round>();
	/** The pauses of deletions that wait. */
	readonly #pauses = new Map<string, Backoff>();

	constructor(context: ConstraintContext, store: StorageBackend) {
		this.#context = context;
		this.#store = store;
	}

	/** Applies a deletion to one page of resources. */
	async handle(deletion: Deletion): Promise<HandlerResult> {
		const { limits } = this.#context;
		const key = keyOfDeletion(deletion);
		const round = this.#rounds.get(key) ?? this.#beginRound(deletion);
		for (let visited = 1; visited <= limits.pageSize; visited++) {
			const { done, value: stored } = round.left.next();
			if (done) {
				return this.#endRound(key, round);
			}
			try {
				const outcome = await this.#applyRule(stored, deletion);
				round.isWaiting ||= outcome === "waits";
				round.isContended ||= outcome === "contended";
			} catch (failure) {
				// A failure must not affect the other resources.
				round.failures.push(failure);
			}
			if (visited % yieldEvery === 0) {
				// Yields to the event loop: the in-memory storage never does.
				await sleep(this.#context.runtime.clock, 0);
			}
		}
		this.#rounds.set(key, round);
		return { requeueAfterMs: 0 };
	}

	#beginRound({ target }: Deletion): Round {
		return {
			left: this.#context.index.referencing(target),
			isWaiting: false,
			isContended: false,
			failures: [],
		};
	}

	#endRound(key: string, { isWaiting, isContended, failures }: Round): HandlerResult {
		const { limits, runtime } = this.#context;
		const { clock, random } = runtime;
		this.#rounds.delete(key);
		if (failures.length > 0) {
			throw failures[0];
		}
		if (isContended) {
			// At random, so that those that have met do not meet again.
			return { requeueAfterMs: limits.maxRetryDelayMs * (0.5 + random.next()) };
		}
		if (!isWaiting) {
			this.#pauses.delete(key);
			return done;
		}
		const { requeryMs: baseMs, maxRequeryMs: maxMs } = limits;
		const pauses = this.#pauses.get(key) ?? new Backoff({ clock, baseMs, maxMs, random });
		this.#pauses.set(key, pauses);
		return { requeueAfterMs: pauses.nextDelayMs() };
	}

	/** What a deletion waits for may have happened: the next pause is short again. */
	hasten(deletion: Deletion): void {
		this.#pauses.get(keyOfDeletion(deletion))?.reset();
	}

	/** Drops the state of a deletion that is not to be applied any more. */
	forget(deletion: Deletion): void {
		const key = keyOfDeletion(deletion);
		this.#rounds.delete(key);
		this.#pauses.delete(key);
	}

	/**
	 * Reads the resource before its shadow: as long as the resource has the version that was read, its
	 * references and their target uids are those in the shadow.
	 */
	async #applyRule(
		{ name, shadow: indexed }: StoredShadow,
		deletion: Deletion,
	): Promise<"done" | "waits" | "contended"> {
		const { backend, dropped, environment, logger } = this.#context;
		const { deploymentUid: by } = deletion;
		const resource = indexed.resource && (await backend.lookup(nameOfKey(indexed.resource)));
		const stored = await readShadow(backend, name);
		const shadow = stored?.shadow;
		const isDeleted = resource === undefined || resource.id?.uid !== shadow?.uid;
		if (
			isDeleted ||
			stored === undefined ||
			shadow === undefined ||
			isDeletionIrrevocable(resource)
		) {
			return "done";
		}
		try {
			// Another schema may change the rule, and a succession the uid of the target or of its deployment, without
			// changing the resource: assert the shadow too.
			const asRead: Mutation = {
				op: "assert",
				id: recordId(name),
				expectedVersion: stored.version,
			};
			const isGuarded =
				by !== environment.self.uid &&
				!isPlanted("apply a deletion after its deployment was dropped");
			const notDropped = isGuarded ? [dropped.notDropped(by)] : [];
			const held = this.#heldOf(shadow, deletion);
			const rule = strictest(held.map((each) => each.rule));
			const cascades =
				rule === OnDelete.CASCADE ||
				(rule === OnDelete.BLOCK && (await isInMarkedTenancy(backend, resource)));
			if (cascades) {
				if (isMarkedForDeletion(resource)) {
					// It releases the target once its finalizers are gone: that needs no pass, and is reported.
					return "done";
				}
				await this.#store.commit([
					...removalOf(this.#context.runtime, resource),
					asRead,
					...notDropped,
				]);
				return "done";
			}
			if (rule === OnDelete.UNSET) {
				await clearReferences(this.#context, this.#store, { resource, stored }, held, notDropped);
			}
			return rule === OnDelete.BLOCK ? "waits" : "done";
		} catch (failure) {
			if (
				isConflict(failure) &&
				!isPlanted("let deletions that meet a conflict wait as blocked ones")
			) {
				return "contended";
			}
			if (failure instanceof Refused || isConflict(failure)) {
				logger.debug({ err: failure, uid: resource.id?.uid }, "a cascade has to wait");
				return "waits";
			}
			throw failure;
		}
	}

	/**
	 * The references to the target, if the deletion is that of the deployment which is responsible for them.
	 * A reference that records no deployment is to a resource of this one, or is older than that record: then any
	 * deletion counts, except that of a deployment which has a successor. None counts of a deployment that was dropped.
	 */
	#heldOf(shadow: Shadow, deletion: Deletion): readonly OutgoingReference[] {
		const { target, targetUid: uid, deploymentUid: by } = deletion;
		const { dropped, environment } = this.#context;
		if (dropped.isRefused(by)) {
			return [];
		}
		return shadow.outgoing
			.filter((each) => sameTarget(each.target, target))
			.filter(
				({ targetUid }) =>
					targetUid === uid || isPlanted("act on a deletion by name instead of uid"),
			)
			.filter(({ deploymentUid }) => responsibleUid(environment, deploymentUid || by) === by);
	}
}

/** One round over the resources that reference a target. A target in deletion gets no new ones. */
interface Round {
	readonly left: Iterator<StoredShadow>;
	/** Whether some resource must be retried. */
	isWaiting: boolean;
	/** Whether some resource was changed concurrently, and must be read again. */
	isContended: boolean;
	/** Unexpected failures. The round ends by throwing the first one, and is retried. */
	readonly failures: unknown[];
}

function keyOfDeletion({ deploymentUid, target, targetUid }: Deletion): string {
	return `${deploymentUid} ${keyString(target)} ${targetUid}`;
}

/** The number of resources of a cascade between two yields to the event loop. */
const yieldEvery = 2;
