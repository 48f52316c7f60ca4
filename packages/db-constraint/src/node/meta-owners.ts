/**
 * The owner references of this deployment's resources, which may go to any service and region.
 *
 *     new ──ask the owner's deployment──┬─ valid ─────▶ recorded there and here
 *                                       ├─ not known ─▶ ask again
 *                                       └─ not valid, three times over the grace period ─▶ let go
 *     the owner's deployment announces a newer version ─▶ the reference is rewritten to it
 *     let go: remove the reference; where it is the last one and the resource is not to outlive it,
 *             delete the resource instead, in the version in which it is the last one.
 */

import { create, equals } from "@bufbuild/protobuf";
import type { OwnerReference, Resource } from "@plinth/proto";
import {
	type CheckMetaOwnersRequest_Ownership,
	CheckMetaOwnersRequest_OwnershipSchema,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	Lifecycle,
	type MetaOwner,
	MetaOwnerSchema,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion, newUlid } from "@plinth/resource";
import { type Mutation, Refused, type StorageBackend } from "@plinth/storage";
import { compareApiVersions } from "../api-versions.ts";
import { Batcher } from "../batcher.ts";
import { checkOwnerships } from "../check-ownership.ts";
import { keyOfShadow } from "../commit-plan.ts";
import { isConflict } from "../conflict.ts";
import type { ConstraintContext } from "../constraint-context.ts";
import { routeTo } from "../holder-query.ts";
import { ownerKey, sameOwner } from "../owner-references.ts";
import { deletion } from "../removals.ts";
import { type KeyLike, nameOfKey } from "../resource-key.ts";
import { deployedOf, sameTarget, shadowName } from "../shadow.ts";
import { lookup, readShadow, recordId, type StoredShadow } from "../shadow-records.ts";
import { updateShadow } from "../shadow-update.ts";
import { FirstSeen } from "./first-seen.ts";
import { done, type PassResult, soonest } from "./pass-result.ts";

/** How often an owner must be found not valid before its ownee lets go of it. */
const answersNeeded = 3;

/** What a pass has learnt of one owner. */
interface Look extends PassResult {
	readonly owner: MetaOwner;
	/** What its deployment said, to be recorded. */
	readonly known?: Pick<MetaOwner, "valid" | "notValidAnswers" | "deploymentUid">;
	/** Whether it was not valid often enough. */
	readonly isLost?: boolean;
}

/** See the head of this file. */
export class MetaOwners {
	readonly #context: ConstraintContext;
	readonly #store: StorageBackend;
	readonly #firstSeen: FirstSeen;
	readonly #soon = new Set<string>();
	/**
	 * When to try again to delete what others block, by shadow, on the monotonic clock. Each try changes
	 * the shadow, and every change brings another pass about: without this they would go in circles.
	 */
	readonly #refused = new Map<string, number>();

	/** When owners that must reference their ownee were asked last, by shadow, on the monotonic clock. */
	readonly #required = new Map<string, number>();

	readonly #holderQuery = new Map<string, Batcher<CheckMetaOwnersRequest_Ownership, Verdict>>();

	constructor(context: ConstraintContext, store: StorageBackend) {
		this.#context = context;
		this.#store = store;
		this.#firstSeen = new FirstSeen(context.runtime.clock);
	}

	/** Has the owners of a shadow's resource asked in its next pass, valid ones too. */
	checkSoon(shadowName: string): void {
		this.#soon.add(shadowName);
	}

	/** The shadow is gone. */
	forget(shadowName: string): void {
		this.#soon.delete(shadowName);
		this.#refused.delete(shadowName);
		this.#required.delete(shadowName);
		this.#firstSeen.keep(shadowName, []);
	}

	/** One pass over the owner references of a shadow. */
	async check(stored: StoredShadow): Promise<PassResult> {
		if (stored.shadow.metaOwners.length === 0) {
			this.#firstSeen.keep(stored.name, []);
			return done;
		}
		await this.executeCheckMetaOwnees(stored);
		const all = this.#soon.delete(stored.name);
		const recheckMs = this.#recheckMs(stored);
		const open = stored.shadow.metaOwners.filter((each) => {
			const { owner, valid, requiresOwnerReference } = each;
			const isDue =
				all ||
				!valid ||
				this.#keeper(owner) === undefined ||
				(recheckMs === 0 && requiresOwnerReference);
			// Shadows that were written by older code may have several records of one owner.
			return isDue && find(stored.shadow, each) === each;
		});
		this.#firstSeen.keep(
			stored.name,
			open.map((owner) => thingOf(stored, owner)),
		);
		const looks = await Promise.all(open.map((owner) => this.#look(stored, owner)));
		const handled: PassResult[] = [];
		for (const look of looks) {
			handled.push(look.isLost ? await this.#letGo(stored, look.owner) : look);
		}
		await this.#note(stored.name, looks);
		return soonest(
			...handled,
			recheckMs === undefined
				? done
				: { requeueAfterMs: recheckMs || this.#context.limits.resolveRetryMs },
		);
	}

	/**
	 * How soon owners are due to be asked again that must reference the resource: they may have been
	 * saved without, and whoever was told may have been down.
	 */
	#recheckMs({ name, shadow }: StoredShadow): number | undefined {
		if (!shadow.metaOwners.some(({ requiresOwnerReference }) => requiresOwnerReference)) {
			return undefined;
		}
		const { runtime, limits } = this.#context;
		const now = runtime.clock.monotonic();
		const last = this.#required.get(name);
		if (last !== undefined && now < last + limits.resolveRetryMs) {
			return last + limits.resolveRetryMs - now;
		}
		this.#required.set(name, now);
		return last === undefined ? limits.resolveRetryMs : 0;
	}

	/**
	 * Rewrites owner references to the version that their owners' deployments have announced: forward
	 * only, and never on a resource that is being deleted. Each is by itself, so that a pass that was
	 * broken off goes on with those that are left.
	 */
	async executeCheckMetaOwnees(stored: StoredShadow): Promise<void> {
		const { backend, runtime } = this.#context;
		const resource = await lookup(backend, nameOfKey(keyOfShadow(stored.shadow)));
		if (resource?.id?.uid !== stored.shadow.uid || isMarkedForDeletion(resource)) {
			return;
		}
		let rewritten = false;
		const ownerReferences = resource.ownerReferences.map((reference) => {
			const keeper = this.#keeper(this.#ownerKey(reference));
			const { type } = reference;
			if (!keeper || !type || compareApiVersions(keeper.version, type.groupVersion) <= 0) {
				return reference;
			}
			rewritten = true;
			return { ...reference, type: { ...type, groupVersion: keeper.version } };
		});
		if (!rewritten) {
			return;
		}
		const next = { ...resource, ownerReferences, generation: newUlid(runtime) };
		try {
			await this.#store.commit([{ op: "put", resource: next, expectedVersion: resource.version }]);
		} catch (failure) {
			// Whoever changed it meanwhile brings another pass about.
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}

	#ownerKey(reference: OwnerReference): KeyLike {
		const { descriptor, environment } = this.#context;
		return ownerKey(reference, environment.self.region, descriptor);
	}

	/** The deployment that keeps an owner, as far as it is known. */
	#keeper(owner: KeyLike | undefined) {
		const { descriptor, environment } = this.#context;
		const service = owner && descriptor.serviceOfGroup(owner.group);
		return environment.findOwner(owner?.group ?? "", service, owner?.region ?? "");
	}

	/** Asks about one owner, where it is time to. */
	async #look(stored: StoredShadow, owner: MetaOwner): Promise<Look> {
		const { limits } = this.#context;
		const { notValidAnswers: answers, deploymentUid } = owner;
		const thing = thingOf(stored, owner);
		const spacingMs = limits.ownerGraceMs / (answersNeeded - 1);
		if (answers > 0) {
			const waitMs = spacingMs * answers - this.#firstSeen.age(stored.name, thing);
			if (waitMs > 0) {
				return { owner, requeueAfterMs: waitMs };
			}
		}
		const verdict = await this.#ask(stored, owner).catch(() => Verdict.UNSPECIFIED);
		if (verdict === Verdict.UNSPECIFIED) {
			return { owner, requeueAfterMs: limits.requeryMs };
		}
		if (verdict === Verdict.VALID) {
			const keptBy = this.#keeper(owner.owner)?.uid ?? deploymentUid;
			return { owner, known: { valid: true, notValidAnswers: 0, deploymentUid: keptBy } };
		}
		if (answers === 0) {
			// The grace period begins with the first answer, whatever was seen of that owner before.
			this.#firstSeen.reestablish(stored.name, thing);
		}
		return answers + 1 < answersNeeded
			? {
					owner,
					known: { valid: false, notValidAnswers: answers + 1, deploymentUid },
					requeueAfterMs: spacingMs,
				}
			: { owner, isLost: true };
	}

	async #ask(stored: StoredShadow, owner: MetaOwner): Promise<Verdict> {
		const { environment } = this.#context;
		const keeper = this.#keeper(owner.owner);
		if (keeper === undefined) {
			// Only the permanent record says that an owner went with its deployment.
			return owner.deploymentUid !== "" && (await environment.isDeleted(owner.deploymentUid))
				? Verdict.NOT_VALID
				: Verdict.UNSPECIFIED;
		}
		return this.#batcher(keeper.uid).ask(
			create(CheckMetaOwnersRequest_OwnershipSchema, {
				ownee: keyOfShadow(stored.shadow),
				owneeUid: stored.shadow.uid,
				ownerUid: owner.ownerUid,
				requiresOwnerReference: owner.requiresOwnerReference,
				...(owner.owner && { owner: owner.owner }),
			}),
		);
	}

	#batcher(uid: string): Batcher<CheckMetaOwnersRequest_Ownership, Verdict> {
		const { environment, limits } = this.#context;
		let batcher = this.#holderQuery.get(uid);
		if (batcher === undefined) {
			batcher = new Batcher(async (ownerships) => {
				if (uid === environment.self.uid) {
					return checkOwnerships(this.#context, deployedOf(environment.self), ownerships);
				}
				const { verdicts } = await environment
					.client(uid)
					.checkMetaOwners(
						{ route: routeTo(this.#context, uid), ownerships: [...ownerships] },
						{ timeoutMs: limits.callMs },
					);
				return verdicts;
			}, limits.batchSize);
			this.#holderQuery.set(uid, batcher);
		}
		return batcher;
	}

	/** Records what has been learnt, in one change of the shadow. */
	#note(name: string, looks: readonly Look[]): Promise<void> {
		return updateShadow(this.#context, name, ({ shadow }) => {
			if (shadow.lifecycle === Lifecycle.CHECKING) {
				// A deletion needs it as it is. Its next change brings another pass about.
				return undefined;
			}
			const metaOwners = shadow.metaOwners.map((each) => {
				const known = looks.find(({ owner }) => sameOwner(owner, each))?.known;
				return known === undefined ||
					(each.valid === known.valid &&
						each.notValidAnswers === known.notValidAnswers &&
						each.deploymentUid === known.deploymentUid)
					? each
					: { ...each, ...known };
			});
			const isSame = metaOwners.every((each, i) => each === shadow.metaOwners[i]);
			return isSame ? undefined : { ...shadow, metaOwners };
		});
	}

	/**
	 * By compare-and-swap on the version in which the reference was seen to be the last one, or not; on the
	 * shadow, in which the reference is the one that was asked about; and where the owner must reference the
	 * ownee, on the shadow as it was before the question: an owner elsewhere that has referenced the ownee
	 * since then has changed it. One that is kept here need not have: its own shadow is looked at again.
	 */
	async #letGo(stored: StoredShadow, owner: MetaOwner): Promise<PassResult> {
		const { backend, runtime, limits } = this.#context;
		const waitMs = (this.#refused.get(stored.name) ?? 0) - runtime.clock.monotonic();
		if (waitMs > 0) {
			return { requeueAfterMs: waitMs };
		}
		// That an owner is gone stays true, however often others change the shadow to reference the ownee.
		const seen = owner.requiresOwnerReference ? stored : await readShadow(backend, stored.name);
		const asAsked = seen && find(seen.shadow, owner);
		if (seen === undefined || asAsked === undefined) {
			return done;
		}
		if (!equals(MetaOwnerSchema, asAsked, owner)) {
			return { requeueAfterMs: limits.pauseMs };
		}
		const resource = await lookup(backend, nameOfKey(keyOfShadow(stored.shadow)));
		if (resource === undefined || resource.id?.uid !== stored.shadow.uid) {
			return done;
		}
		const left = resource.ownerReferences.filter(
			(each) => each.uid !== owner.ownerUid || !sameTarget(this.#ownerKey(each), owner.owner),
		);
		if (left.length === resource.ownerReferences.length) {
			return done;
		}
		const lacking = await this.#lacking(stored, owner);
		if (lacking === undefined) {
			return { requeueAfterMs: limits.pauseMs };
		}
		const asBefore: readonly Mutation[] = [
			{ op: "assert", id: recordId(stored.name), expectedVersion: seen.version },
			...lacking,
		];
		try {
			if (left.length > 0 || owner.unsetOnDelete || isMarkedForDeletion(resource)) {
				const next: Resource = { ...resource, ownerReferences: left, generation: newUlid(runtime) };
				await this.#store.commit([
					{ op: "put", resource: next, expectedVersion: resource.version },
					...asBefore,
				]);
			} else {
				await this.#store.commit([...deletion(runtime, resource), ...asBefore]);
			}
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return { requeueAfterMs: limits.pauseMs };
			}
			if (failure instanceof Refused) {
				this.#refused.set(stored.name, runtime.clock.monotonic() + limits.requeryMs);
				return { requeueAfterMs: limits.requeryMs };
			}
			throw failure;
		}
	}

	/**
	 * What a commit asserts where the owner must reference the ownee, is kept here, and does not; nothing where
	 * it is not valid for good anyway, `undefined` where it references the ownee by now.
	 */
	async #lacking(
		ownee: StoredShadow,
		{ owner, ownerUid, requiresOwnerReference }: MetaOwner,
	): Promise<readonly Mutation[] | undefined> {
		const { backend, environment } = this.#context;
		if (!requiresOwnerReference || !owner || this.#keeper(owner)?.uid !== environment.self.uid) {
			return [];
		}
		const resource = await lookup(backend, nameOfKey(owner), { consistency: "strong" });
		if (resource?.id?.uid !== ownerUid || isMarkedForDeletion(resource)) {
			return [];
		}
		const name = shadowName(owner);
		const from = await readShadow(backend, name, { consistency: "strong" });
		if (from?.shadow.lifecycle === Lifecycle.DELETING) {
			return [];
		}
		return references(from, ownee)
			? undefined
			: [{ op: "assert", id: recordId(name), expectedVersion: from?.version ?? "" }];
	}
}

/** Whether a shadow has a reference to the resource of another one. */
function references(from: StoredShadow | undefined, { shadow }: StoredShadow): boolean {
	return from?.shadow.outgoing.some((each) => sameTarget(each.target, shadow.resource)) ?? false;
}

function thingOf({ shadow }: StoredShadow, { ownerUid, owner }: MetaOwner): string {
	return `${shadow.uid} ${ownerUid} ${owner?.region ?? ""}`;
}

function find(shadow: Shadow, owner: MetaOwner): MetaOwner | undefined {
	return shadow.metaOwners.find((each) => sameOwner(each, owner));
}
