/**
 * Checks the owner references of this deployment's resources. The owners may be in any service and region.
 *
 *     new ──query the owner's deployment──┬─ valid ─────▶ recorded there and here
 *                                         ├─ not known ─▶ query again after a growing pause, and report it
 *                                         └─ not valid, three times over the grace period ─▶ owner is lost
 *     the owner's deployment announces a newer version ─▶ the reference is rewritten to it
 *     it was valid, and the successor of its deployment has no such owner: a restore has lost it. The
 *     reference is held and reported, until operators settle it, or the successor says that it is valid,
 *     or announces its deletion
 *     owner is lost: remove the reference. If it is the last one and the resource must not outlive its
 *                    owners, delete the resource instead, in the version in which it is the last one.
 */

import { create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import { CheckMetaOwnersResponse_Verdict as Verdict } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	Lifecycle,
	type MetaOwner,
	MetaOwnerSchema,
	MissingTargetSchema,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion, newUlid } from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import { Exhausted, type Mutation, Refused, type StorageBackend } from "@plinth/storage";
import { keyOfShadow } from "../commit/commit-plan.ts";
import { isConflict } from "../commit/conflict.ts";
import { deletion } from "../commit/removals.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { compareApiVersions } from "../schema/api-versions.ts";
import { ownerKey, sameOwner } from "../schema/owner-references.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { sameTarget, shadowName } from "../shadow/shadow.ts";
import { readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { notValidState, requiresReferences, requiringState } from "../shadow/waiting-ages.ts";
import { assertUid } from "../succession/deployment-record.ts";
import { afterConflict, done, type HandlerResult, soonest } from "./handler-result.ts";
import { isInherited, ownerDeployment } from "./owner-deployments.ts";
import type { OwnerQuery } from "./owner-query.ts";
import {
	condition,
	lostOwnersMessage,
	ownersKnown,
	statusKey,
	withCondition,
} from "./reported-status.ts";
import { UnknownOwners } from "./unknown-owners.ts";
import { assertsOfDecided, assertsOfValid } from "./valid-owners.ts";

/** How often an owner must be found not valid before it is considered lost. */
const notValidNeeded = 3;

/** The result of checking one owner. */
interface OwnerCheck extends HandlerResult {
	readonly owner: MetaOwner;
	/** The state to record. */
	readonly known?: Pick<MetaOwner, "valid" | "notValidAnswers" | "deploymentUid" | "missing">;
	/** The deployments that decided that it is not valid, by uid, if it was found so often enough. */
	readonly lostBy?: readonly string[];
	/** Whether it could not be found out. */
	readonly isUnknown?: boolean;
}

/** The result of recording what checks have found. */
interface Recorded extends HandlerResult {
	/** Whether nothing was recorded, since a deletion of the resource was being checked. */
	readonly isPostponed?: boolean;
}

/** See the comment at the top of this file. */
export class MetaOwners {
	readonly #context: ConstraintContext;
	readonly #store: StorageBackend;
	readonly #unknown: UnknownOwners;
	/** The shadows of which the next pass queries all owners. */
	readonly #checkNext = new Set<string>();
	/**
	 * The owners whose deployments have not responded since then, or whose verdict was not recorded, by shadow. Valid ones too
	 * are queried until it is.
	 */
	readonly #unanswered = new Map<string, ReadonlySet<string>>();
	/** The deployments that have announced the deletion of an owner, by shadow and by uid of the owner. */
	readonly #announced = new Map<string, Map<string, string>>();
	/**
	 * When to retry a deletion of an ownee that was blocked, met a conflict or failed, by shadow, on the monotonic clock. Each
	 * attempt changes the shadow, and each change triggers another pass: without this, passes would repeat without a pause.
	 */
	readonly #pausedUntilMs = new Map<string, number>();

	/** The growing pauses of deletions of ownees that are blocked or fail, by shadow. */
	readonly #blocked = new Map<string, Backoff>();

	/** When the owners that must reference their ownee were last queried, by shadow, on the monotonic clock. */
	readonly #required = new Map<string, number>();

	readonly #query: OwnerQuery;

	constructor(
		context: ConstraintContext,
		store: StorageBackend,
		shared: { readonly ownerQuery: OwnerQuery },
	) {
		this.#context = context;
		this.#store = store;
		this.#unknown = new UnknownOwners(context.runtime.clock, context.limits);
		this.#query = shared.ownerQuery;
	}

	/** A deployment has announced the deletion of an owner: the next pass over the shadow queries all owners, also valid ones. */
	checkSoon(shadowName: string, ownerUid: string, deploymentUid: string): void {
		this.#checkNext.add(shadowName);
		const announced = this.#announced.get(shadowName) ?? new Map<string, string>();
		this.#announced.set(shadowName, announced.set(ownerUid, deploymentUid));
		this.hasten(shadowName);
	}

	/** The registry has changed: the next pass queries the owners of which is not known whether they are valid. */
	hasten(shadowName: string): void {
		this.#unknown.hasten(shadowName);
	}

	/**
	 * Something no longer references the ownee: if its deletion was blocked, it is tried again soon. Returns whether it was.
	 */
	released(shadowName: string): boolean {
		const blocked = this.#blocked.get(shadowName);
		if (blocked === undefined) {
			return false;
		}
		const { runtime, limits } = this.#context;
		const soonMs = runtime.clock.monotonic() + limits.maxRetryDelayMs;
		const untilMs = this.#pausedUntilMs.get(shadowName) ?? soonMs;
		this.#pausedUntilMs.set(shadowName, Math.min(untilMs, soonMs));
		blocked.reset();
		return true;
	}

	/** Drops the state of a deleted shadow. */
	forget(shadowName: string): void {
		this.#blocked.delete(shadowName);
		this.#checkNext.delete(shadowName);
		this.#unanswered.delete(shadowName);
		this.#announced.delete(shadowName);
		this.#pausedUntilMs.delete(shadowName);
		this.#required.delete(shadowName);
		this.#unknown.retain(shadowName, new Set());
	}

	/** One pass over the owner references of a shadow. */
	async check(stored: StoredShadow): Promise<HandlerResult> {
		if (stored.shadow.metaOwners.length === 0) {
			this.#unknown.retain(stored.name, new Set());
			this.#unanswered.delete(stored.name);
			return done;
		}
		this.#unknown.begin(stored.name);
		const rewritten = await this.#rewriteVersions(stored);
		const all = this.#checkNext.delete(stored.name);
		try {
			return soonest(rewritten, await this.#checkDue(stored, all));
		} catch (failure) {
			if (all) {
				this.#checkNext.add(stored.name);
			}
			throw failure;
		}
	}

	/** Queries the owners that are due, or all. */
	async #checkDue(stored: StoredShadow, all: boolean): Promise<HandlerResult> {
		const recheckMs = this.#recheckMs(stored);
		const unanswered = this.#unanswered.get(stored.name);
		const open = stored.shadow.metaOwners.filter((each) => {
			const { valid, requiresOwnerReference } = each;
			const isDue =
				all ||
				!valid ||
				unanswered?.has(itemOf(stored, each)) ||
				isInherited(this.#context, each) ||
				ownerDeployment(this.#context, each) === undefined ||
				(recheckMs === 0 && requiresOwnerReference);
			// Shadows written by older versions may have several records of one owner.
			return isDue && find(stored.shadow, each) === each;
		});
		const guards = await this.#context.guards.asserts(open.flatMap(({ owner }) => owner ?? []));
		const checks = await Promise.all(open.map((owner) => this.#check(stored, owner)));
		const results: HandlerResult[] = [];
		for (const check of checks) {
			results.push(
				check.lostBy ? await this.#handleLost(stored, check.owner, check.lostBy) : check,
			);
		}
		const recorded = await this.#record(stored, checks, guards);
		const unknown = checks.flatMap(({ owner, isUnknown }) =>
			isUnknown ? itemOf(stored, owner) : [],
		);
		this.#unknown.retain(stored.name, new Set(unknown));
		const unrecorded = recorded.isPostponed ? open.map((owner) => itemOf(stored, owner)) : unknown;
		const left = unrecorded.filter((item) => all || unanswered?.has(item));
		if (left.length > 0 && !isPlanted("query the owner of an announced deletion once")) {
			this.#unanswered.set(stored.name, new Set(left));
		} else {
			this.#unanswered.delete(stored.name);
		}
		const reported = await this.#report(stored, checks);
		return soonest(
			recorded,
			reported,
			...results,
			recheckMs === undefined
				? done
				: { requeueAfterMs: recheckMs || this.#context.limits.resolveRetryMs },
		);
	}

	/**
	 * The time until owners that must reference the resource are due for another query: they may have been
	 * saved without the reference while this deployment was down.
	 */
	#recheckMs({ name, shadow }: StoredShadow): number | undefined {
		if (!requiresReferences(shadow)) {
			return undefined;
		}
		const { ages, runtime, limits } = this.#context;
		const now = runtime.clock.monotonic();
		const last = this.#required.get(name) ?? now - ages.ageMs(name, requiringState(shadow));
		if (now < last + limits.resolveRetryMs) {
			return last + limits.resolveRetryMs - now;
		}
		this.#required.set(name, now);
		return 0;
	}

	/**
	 * Rewrites owner references to the version that the owners' deployments have announced: forward only, and
	 * never on a resource that is being deleted. Each resource is rewritten separately, so that an interrupted
	 * pass resumes with the remaining ones. A rewrite that is refused, or for which the storage has no room, is tried again
	 * later: it must not hold up the checks of the owners.
	 */
	async #rewriteVersions(stored: StoredShadow): Promise<HandlerResult> {
		const { backend, limits, logger, runtime } = this.#context;
		const resource = await backend.lookup(nameOfKey(keyOfShadow(stored.shadow)));
		if (resource?.id?.uid !== stored.shadow.uid || isMarkedForDeletion(resource)) {
			return done;
		}
		let rewritten = false;
		const ownerReferences = resource.ownerReferences.map((reference) => {
			const owner = ownerKey(this.#context, reference, stored.shadow.metaOwners);
			const isRecorded = (each: MetaOwner) =>
				each.ownerUid === reference.uid && sameTarget(each.owner, owner);
			const { deploymentUid = "" } = stored.shadow.metaOwners.find(isRecorded) ?? {};
			const { version } = ownerDeployment(this.#context, { owner, deploymentUid }) ?? {};
			const { type } = reference;
			if (version === undefined || !type || compareApiVersions(version, type.groupVersion) <= 0) {
				return reference;
			}
			rewritten = true;
			return { ...reference, type: { ...type, groupVersion: version } };
		});
		if (!rewritten) {
			return done;
		}
		const next = { ...resource, ownerReferences, generation: newUlid(runtime) };
		try {
			await this.#store.commit([{ op: "put", resource: next, expectedVersion: resource.version }]);
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return afterConflict(limits);
			}
			if (failure instanceof Refused || failure instanceof Exhausted) {
				logger.debug({ err: failure, uid: resource.id?.uid }, "an owner keeps its earlier version");
				return { requeueAfterMs: limits.resolveRetryMs };
			}
			throw failure;
		}
	}

	/** Queries one owner, if that is due. */
	async #check(stored: StoredShadow, owner: MetaOwner): Promise<OwnerCheck> {
		const { ages, limits } = this.#context;
		const { notValidAnswers: count, deploymentUid } = owner;
		const item = itemOf(stored, owner);
		const pauseMs = this.#unknown.waitMs(stored.name, item);
		if (pauseMs > 0) {
			return { owner, isUnknown: true, requeueAfterMs: pauseMs };
		}
		const spacingMs = limits.ownerGraceMs / (notValidNeeded - 1);
		if (count > 0) {
			const waitMs = spacingMs - ages.ageMs(stored.name, notValidState(stored.shadow, owner));
			if (waitMs > 0) {
				return { owner, requeueAfterMs: waitMs };
			}
		}
		const { verdict, problem, decidedBy } = await this.#query.ask(stored, owner);
		const isKnown = verdict !== undefined && verdict !== Verdict.UNSPECIFIED;
		if (!isKnown && !isPlanted("treat not known as not valid")) {
			const requeueAfterMs = this.#unknown.failed(stored.name, item, problem);
			return { owner, isUnknown: true, requeueAfterMs };
		}
		if (verdict === Verdict.VALID) {
			return {
				owner,
				known: {
					valid: true,
					notValidAnswers: 0,
					deploymentUid: decidedBy[0] ?? deploymentUid,
				},
			};
		}
		const { uid: successorUid = "" } = ownerDeployment(this.#context, owner) ?? {};
		const isAnnounced = this.#announced.get(stored.name)?.get(owner.ownerUid) === successorUid;
		if (isInherited(this.#context, owner) && !isAnnounced) {
			const since = timestampFromMs(this.#context.runtime.clock.now());
			const init = { uid: owner.ownerUid, deploymentUid: successorUid, since };
			const missing = owner.missing ?? create(MissingTargetSchema, init);
			return {
				owner,
				known: { valid: true, notValidAnswers: 0, deploymentUid, missing },
				requeueAfterMs: limits.resolveRetryMs,
			};
		}
		return count + 1 < notValidNeeded
			? {
					owner,
					known: { valid: false, notValidAnswers: count + 1, deploymentUid },
					requeueAfterMs: spacingMs,
				}
			: { owner, lostBy: decidedBy };
	}

	/** Reports the owners of which has not been known for long whether they are valid, and the end of that. */
	async #report(
		{ name, shadow }: StoredShadow,
		checks: readonly OwnerCheck[],
	): Promise<HandlerResult> {
		const { backend, limits, runtime } = this.#context;
		const unknown = this.#unknown.problems(name);
		const lost = checks.flatMap(({ owner, known }) =>
			known?.missing === undefined || known.missing.isKept ? [] : owner,
		);
		const problems = [
			...(unknown.length === 0 ? [] : [`kept until it is known: ${unknown.join("; ")}`]),
			...(lost.length === 0 ? [] : [lostOwnersMessage(this.#context, lost)]),
		];
		if (problems.length === 0 && this.#unknown.has(name)) {
			return done;
		}
		const resource = await backend.lookup(nameOfKey(keyOfShadow(shadow)));
		if (resource === undefined || resource.id?.uid !== shadow.uid) {
			return done;
		}
		const wasReported = resource.status[statusKey]?.conditions.some(
			({ type }) => type === ownersKnown,
		);
		if (problems.length === 0 && !wasReported) {
			return done;
		}
		const message = problems.join("; ");
		const reported = withCondition(
			resource,
			condition(ownersKnown, problems.length === 0, message),
			runtime.clock,
		);
		if (reported === undefined) {
			return done;
		}
		try {
			await this.#store.commit([
				{ op: "put", resource: reported, expectedVersion: resource.version },
			]);
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return afterConflict(limits);
			}
			// A storage without room takes no report.
			if (failure instanceof Exhausted) {
				return done;
			}
			throw failure;
		}
	}

	/**
	 * Records the results of all checks in one change of the shadow. Another deployment that has said that an owner is valid
	 * knows the uid of this one as a holder: once that is given up, all owners are queried again. So are those whose
	 * verdict came too late, or from a deployment that was dropped or taken over meanwhile. While a deletion of the resource is
	 * being checked, which needs the shadow unchanged, nothing is recorded: the end of that changes the shadow, which triggers
	 * another pass.
	 *
	 * @param before - the shadow as it was read before the checks.
	 * @param guards - the guards of the owners, as they were read before the checks.
	 */
	async #record(
		before: StoredShadow,
		checks: readonly OwnerCheck[],
		guards: readonly Mutation[],
	): Promise<Recorded> {
		const { uid } = this.#context.environment.self;
		const isHolder = checks.some(({ known }) => known?.valid && known.deploymentUid !== uid);
		/** Without those whose records have stayed since they were queried. */
		let nowValid: readonly MetaOwner[] = [];
		/** The other deployments that have said what is to be recorded as valid. */
		let decidedBy: readonly string[] = [];
		let isOutdated = false;
		let isPostponed = false;
		const change = ({ shadow, version }: StoredShadow) => {
			const metaOwners = shadow.metaOwners.map((each) => {
				const known = checks.find(({ owner }) => sameOwner(owner, each))?.known;
				return known === undefined || isSameState(each, known) ? each : withState(each, known);
			});
			const isNowValid = ({ valid }: MetaOwner, i: number) => valid && !shadow.metaOwners[i]?.valid;
			nowValid = version === before.version ? [] : metaOwners.filter(isNowValid);
			const changed = metaOwners.filter((each, i) => each !== shadow.metaOwners[i]);
			decidedBy = changed.flatMap(({ valid, missing, deploymentUid }) =>
				valid && missing === undefined && deploymentUid !== uid ? deploymentUid : [],
			);
			isPostponed = changed.length > 0 && shadow.lifecycle === Lifecycle.CHECKING;
			return changed.length === 0 || isPostponed ? undefined : { ...shadow, metaOwners };
		};
		await updateShadow(this.#context, before.name, change, async (options) => {
			const unreleased = await assertsOfValid(
				this.#context,
				before.name,
				nowValid,
				guards,
				options,
			);
			const responsible = await assertsOfDecided(this.#context, decidedBy, options);
			isOutdated = unreleased === undefined || responsible === undefined;
			return unreleased && responsible
				? [
						...unreleased,
						...responsible,
						...(isHolder ? await assertUid(this.#context, options) : []),
					]
				: undefined;
		});
		if (!isOutdated) {
			return isPlanted("drop a verdict while a deletion is being checked") ? done : { isPostponed };
		}
		const others = checks.filter(({ known }) => !known?.valid);
		const recorded = await this.#record(before, others, guards);
		return { ...recorded, requeueAfterMs: this.#context.limits.maxRetryDelayMs };
	}

	/**
	 * Removes the reference to a lost owner, or deletes the resource. Compare-and-swap on the version that
	 * decided whether the reference is the last one, and on the shadow whose reference was checked. If the
	 * owner must reference the ownee, the shadow must be the one from before the query: a remote owner that
	 * has referenced the ownee since then has changed it. A local owner need not have changed it, so its own
	 * shadow is checked again. The deployments that decided must not have been dropped or taken over meanwhile: the registry
	 * view of this server may lack that.
	 */
	async #handleLost(
		stored: StoredShadow,
		owner: MetaOwner,
		decidedBy: readonly string[],
	): Promise<HandlerResult> {
		const { backend, dropped, environment, runtime, limits } = this.#context;
		const waitMs = (this.#pausedUntilMs.get(stored.name) ?? 0) - runtime.clock.monotonic();
		if (waitMs > 0) {
			return { requeueAfterMs: waitMs };
		}
		// A deleted owner stays deleted, however often others change the shadow by referencing the ownee.
		const seen = owner.requiresOwnerReference ? stored : await readShadow(backend, stored.name);
		const asChecked = seen && find(seen.shadow, owner);
		if (seen === undefined || asChecked === undefined) {
			return done;
		}
		if (!equals(MetaOwnerSchema, asChecked, owner)) {
			return { requeueAfterMs: limits.maxRetryDelayMs };
		}
		const resource = await backend.lookup(nameOfKey(keyOfShadow(stored.shadow)));
		if (resource === undefined || resource.id?.uid !== stored.shadow.uid) {
			return done;
		}
		const left = resource.ownerReferences.filter(
			(each) =>
				each.uid !== owner.ownerUid ||
				!sameTarget(ownerKey(this.#context, each, seen.shadow.metaOwners), owner.owner),
		);
		if (left.length === resource.ownerReferences.length) {
			return done;
		}
		const missing = await this.#missingReference(stored, owner);
		if (missing === undefined) {
			return { requeueAfterMs: limits.maxRetryDelayMs };
		}
		const asBefore: readonly Mutation[] = [
			{ op: "assert", id: recordId(stored.name), expectedVersion: seen.version },
			...missing,
			...decidedBy
				.filter(
					(uid) =>
						uid !== environment.self.uid &&
						!isPlanted("remove an owner after the deployment that decided was dropped"),
				)
				.map((uid) => dropped.notDropped(uid)),
		];
		try {
			if (left.length > 0 || owner.unsetOnDelete || isMarkedForDeletion(resource)) {
				const next: Resource = { ...resource, ownerReferences: left, generation: newUlid(runtime) };
				await this.#store.commit([
					{ op: "put", resource: next, expectedVersion: resource.version },
					...asBefore,
				]);
			} else if (isPlanted("remove the last owner reference before deleting")) {
				const free = { ...resource, ownerReferences: left, generation: newUlid(runtime) };
				const { resources } = await this.#store.commit([
					{ op: "put", resource: free, expectedVersion: resource.version },
				]);
				await this.#store.commit(deletion(runtime, resources[0] ?? free));
			} else {
				await this.#store.commit([...deletion(runtime, resource), ...asBefore]);
			}
			this.#blocked.delete(stored.name);
			return done;
		} catch (failure) {
			const isExpected = isConflict(failure) || failure instanceof Refused;
			if (isPlanted("try again at once to delete what has lost its owners") && !isExpected) {
				throw failure;
			}
			const pauseMs = isConflict(failure)
				? limits.maxRetryDelayMs
				: this.#blockedPauseMs(stored.name);
			this.#pausedUntilMs.set(stored.name, runtime.clock.monotonic() + pauseMs);
			if (isExpected) {
				return { requeueAfterMs: pauseMs };
			}
			throw failure;
		}
	}

	/** The pause before a deletion that is blocked or has failed is tried again. */
	#blockedPauseMs(shadowName: string): number {
		const { limits, runtime } = this.#context;
		const { requeryMs: baseMs, maxRequeryMs: maxMs } = limits;
		const backoff =
			this.#blocked.get(shadowName) ?? new Backoff({ clock: runtime.clock, baseMs, maxMs });
		this.#blocked.set(shadowName, backoff);
		return backoff.nextDelayMs();
	}

	/**
	 * The asserts that a local owner, which must reference the ownee, still does not. Empty if the owner is
	 * remote or permanently not valid; `undefined` if it references the ownee by now.
	 */
	async #missingReference(
		ownee: StoredShadow,
		lost: MetaOwner,
	): Promise<readonly Mutation[] | undefined> {
		const { backend, environment } = this.#context;
		const { owner, ownerUid, requiresOwnerReference } = lost;
		const isLocal = ownerDeployment(this.#context, lost)?.uid === environment.self.uid;
		if (!requiresOwnerReference || !owner || !isLocal) {
			return [];
		}
		const resource = await backend.lookup(nameOfKey(owner), { consistency: "strong" });
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

/** Whether both are in the same state. */
function isSameState(owner: MetaOwner, known: NonNullable<OwnerCheck["known"]>): boolean {
	return (
		owner.valid === known.valid &&
		owner.notValidAnswers === known.notValidAnswers &&
		owner.deploymentUid === known.deploymentUid &&
		(owner.missing === undefined) === (known.missing === undefined)
	);
}

/** What is known of a lost owner stays as it was recorded first: operators may have decided since about it. */
function withState(
	{ missing: before, ...owner }: MetaOwner,
	{ missing, ...known }: NonNullable<OwnerCheck["known"]>,
): MetaOwner {
	return { ...owner, ...known, ...(missing && { missing: before ?? missing }) };
}

function itemOf({ shadow }: StoredShadow, { ownerUid, owner }: MetaOwner): string {
	return `${shadow.uid} ${ownerUid} ${owner?.region ?? ""}`;
}

function find(shadow: Shadow, owner: MetaOwner): MetaOwner | undefined {
	return shadow.metaOwners.find((each) => sameOwner(each, owner));
}
