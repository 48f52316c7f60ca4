/**
 * A target somewhere that is being deleted for good, and what this deployment has that references
 * that very incarnation of it:
 *
 *     each resource ──┬─ CASCADE ─▶ delete it, which may in turn wait for others, or be refused
 *                     ├─ UNSET ───▶ clear the references, by compare-and-swap
 *                     ├─ BLOCK ───▶ leave it; in a tenancy that is being deleted: as CASCADE
 *                     └─ owned ───▶ the owned-pending handler asks whether the owner is still valid
 *
 * Conflicts mean looking again. What is refused is tried again later: it waits, and its own shadow and the
 * answer to whoever asks say so.
 */

import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { type Mutation, Refused, type StorageBackend } from "@plinth/storage";
import { clearReferences } from "../clear-references.ts";
import { isConflict } from "../conflict.ts";
import type { ConstraintContext } from "../constraint-context.ts";
import { isInMarkedTenancy, isPastRecall } from "../holder-decision.ts";
import { deletion } from "../removals.ts";
import { type KeyLike, keyString, nameOfKey } from "../resource-key.ts";
import { mergeRules, sameTarget, strictest } from "../shadow.ts";
import { lookup, readShadow, recordId, type StoredShadow } from "../shadow-records.ts";
import { done, type PassResult } from "./pass-result.ts";

/** A target that is being deleted. */
export interface Deletion {
	/** The deployment that keeps it, by uid. */
	readonly deploymentUid: string;
	readonly target: KeyLike;
	readonly targetUid: string;
}

/** See the head of this file. */
export class SubscribedDeletingHandler {
	readonly #context: ConstraintContext;
	/** The storage with its constraints: a cascade is a deletion like any other. */
	readonly #store: StorageBackend;
	readonly #queryHolderSoon: (shadowName: string) => void;
	/** By deletion that is not through with all pages. */
	readonly #rounds = new Map<string, Round>();

	constructor(
		context: ConstraintContext,
		store: StorageBackend,
		checkOwnersSoon: (shadowName: string) => void,
	) {
		this.#context = context;
		this.#store = store;
		this.#queryHolderSoon = checkOwnersSoon;
	}

	/** One page of the work that a deletion brings. */
	async handle({ target, targetUid }: Deletion): Promise<PassResult> {
		const { index, limits } = this.#context;
		for (const { name, shadow } of index.ownedBy(target)) {
			if (shadow.metaOwners.some(({ ownerUid }) => ownerUid === targetUid)) {
				this.#queryHolderSoon(name);
			}
		}
		const key = `${keyString(target)} ${targetUid}`;
		const round: Round = this.#rounds.get(key) ?? {
			all: index.referencing(target),
			next: 0,
			waits: false,
			failures: [],
		};
		const end = Math.min(round.next + limits.pageSize, round.all.length);
		for (const stored of round.all.slice(round.next, end)) {
			round.next += 1;
			try {
				round.waits ||= (await this.#letGo(stored, target, targetUid)) === "waits";
			} catch (failure) {
				// One that fails keeps none of the others.
				round.failures.push(failure);
			}
			if (round.next % yieldEvery === 0) {
				// A storage in memory never lets timers and input have their turn.
				await sleep(this.#context.runtime.clock, 0);
			}
		}
		if (round.next < round.all.length) {
			this.#rounds.set(key, round);
			return { requeueAfterMs: 0 };
		}
		this.#rounds.delete(key);
		if (round.failures.length > 0) {
			throw round.failures[0];
		}
		return round.waits ? { requeueAfterMs: limits.requeryMs } : done;
	}

	/**
	 * The resource is read before its shadow: as long as it has the version that was read, its references
	 * are those that the shadow names, with the uids of what they are to.
	 */
	async #letGo(
		{ name, shadow: indexed }: StoredShadow,
		target: KeyLike,
		targetUid: string,
	): Promise<"done" | "waits"> {
		const { backend, logger } = this.#context;
		const resource = indexed.resource && (await lookup(backend, nameOfKey(indexed.resource)));
		const stored = await readShadow(backend, name);
		const shadow = stored?.shadow;
		const isGone = resource === undefined || resource.id?.uid !== shadow?.uid;
		if (isGone || stored === undefined || shadow === undefined || isPastRecall(resource)) {
			return "done";
		}
		try {
			// Another schema may change the rule, and a target that is taken over its uid; both leave the
			// resource as it is.
			const asRead: Mutation = {
				op: "assert",
				id: recordId(name),
				expectedVersion: stored.version,
			};
			const rule = strictest(usesOf(shadow, target, targetUid));
			const cascades =
				rule === OnDelete.CASCADE ||
				(rule === OnDelete.BLOCK && (await isInMarkedTenancy(backend, resource)));
			if (cascades) {
				if (isMarkedForDeletion(resource)) {
					return "waits";
				}
				await this.#store.commit([...deletion(this.#context.runtime, resource), asRead]);
				return "done";
			}
			if (rule === OnDelete.UNSET) {
				await clearReferences(this.#context, this.#store, resource, [target], [asRead]);
			}
			return rule === OnDelete.BLOCK ? "waits" : "done";
		} catch (failure) {
			if (failure instanceof Refused || isConflict(failure)) {
				logger.debug({ err: failure, uid: resource.id?.uid }, "a cascade waits");
				return "waits";
			}
			throw failure;
		}
	}
}

/** One time through all that referenced a target when it began: nothing new can, once it is being deleted. */
interface Round {
	readonly all: readonly StoredShadow[];
	next: number;
	/** Whether something has to be tried again. */
	waits: boolean;
	/** What went wrong in unforeseen ways: the round ends with the first, and is tried again. */
	readonly failures: unknown[];
}

/** How many resources of a cascade are dealt with before others get their turn. */
const yieldEvery = 2;

function usesOf(shadow: StoredShadow["shadow"], target: KeyLike, uid: string): readonly OnDelete[] {
	return mergeRules(
		shadow.outgoing
			.filter((each) => sameTarget(each.target, target) && each.targetUid === uid)
			.map(({ rule }) => rule),
	);
}
