import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	type MetaOwner,
	MissingTargetSchema,
	type OutgoingReference,
	type ResourceKey,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Caller, isMarkedForDeletion } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import {
	authorize,
	type Establishment,
	establish,
	establishmentKey,
	type ForeignReference,
	type ForeignTarget,
} from "../protocol/establish-references.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { rotated } from "../schema/derivation-order.ts";
import {
	deploymentOf,
	isDeploymentKnown,
	isLocal,
	type LocatedReference,
	locatedOf,
	locateReferences,
	refuseType,
} from "../schema/locate-references.ts";
import { metaOwnersOf, sameOwner } from "../schema/owner-references.ts";
import {
	missingReference,
	type PlannedRecord,
	type PlannedReference,
	RecordedReferences,
	recordEstablished,
	recordHeld,
	recordMissing,
	recordOf,
	resolveTask,
	withRecords,
} from "../shadow/recorded-references.ts";
import { displayKey, type KeyLike, keyOf, keyString, nameOfKey } from "../shadow/resource-key.ts";
import {
	deployedOf,
	mergeRules,
	newShadow,
	sourceOf,
	withoutDeployment,
	withSource,
} from "../shadow/shadow.ts";
import { assertUid, deploymentRecord } from "../succession/deployment-record.ts";
import { responsibleUid } from "../succession/successors.ts";
import type { CommitPlan, ShadowEdit } from "./commit-plan.ts";
import { HeldReferences } from "./held-references.ts";
import { ReferenceAuthorization } from "./reference-authorization.ts";
import { RetryableConflict } from "./retryable-conflict.ts";

/** The maximum number of new references that one commit derives. Each needs up to three mutations. */
export const derivationBatchSize = 25;

/**
 * A shadow with more references gets no tasks to confirm those that are derived. A task is about as large as the reference,
 * and all references may be established again before the first task is done: the shadow would not fit into a record. The
 * target's deployment confirms them too, by a query, later.
 */
const maxConfirmedReferences = 250;

/** The resources of this deployment that the commit creates and deletes, by `keyString`. */
export interface CommitScope {
	/** Created resources. */
	readonly created: ReadonlyMap<string, Resource>;
	/** Deleted or marked resources. */
	readonly deleted: ReadonlySet<string>;
	readonly dryRun: boolean;
	/** The caller to authorize. Default: the deployment itself, which may reference everything. */
	readonly caller?: Caller | undefined;
}

/** How the references of a stored resource are derived again. */
export interface Derivation {
	/**
	 * The targets whose references are established even if the shadow has them. The uid is that of the deployment with
	 * which they are established so far; empty if there is none, or it is this deployment.
	 */
	readonly reestablish: (target: KeyLike, deploymentUid: string) => boolean;
	/** The targets that are left as they are: those that were missing in an earlier commit of this derivation, for example. */
	readonly isMissing?: (target: KeyLike) => boolean;
	/** The deployment with which references are established whose recorded deployment is not known. */
	readonly successor?: DeploymentInfo | undefined;
}

/** A reference that another deployment is to establish. */
interface PlannedForeign extends ForeignReference {
	/** See `LocatedReference`. */
	readonly field: string;
	readonly edit: ShadowEdit;
	/** The record of the reference so far. */
	readonly known: OutgoingReference | undefined;
	/** What is recorded if the target is missing. Default: that it is missing. */
	readonly ifMissing?: OutgoingReference | undefined;
	/** Whether it is established although the shadow has it. */
	readonly isAgain: boolean;
	/** Whether only the incarnation that is held can be the target: the deployment is one of several that may store it. */
	readonly isGuess?: boolean;
}

/** The planned references of a resource, before those to other deployments are established. */
interface Planned {
	readonly located: readonly LocatedReference[];
	/** References to services that are not imported. They are kept. */
	readonly unlocated: readonly OutgoingReference[];
	readonly outgoing: readonly OutgoingReference[];
	/** Records with the rule of an earlier schema, which stay until their targets are established by the active one. */
	readonly earlier: ReadonlySet<OutgoingReference>;
	readonly metaOwners: MetaOwner[];
}

/** A resource whose references are planned. */
interface Holder {
	readonly held: HeldReferences;
	readonly authorization: ReferenceAuthorization;
}

/**
 * Plans the references of the resources that a commit writes: fills in the shadows of the commit plan.
 *
 *     local target ──▶ a source on its shadow, in this commit
 *     target of another deployment ──▶ `establish` there first, then a reference and a task in this commit
 *     missing target ──▶ refused; recorded as unresolved if the resource is older than its schema
 */
export class ReferencePlan {
	readonly #context: ConstraintContext;
	readonly #plan: CommitPlan;
	readonly #scope: CommitScope;
	readonly #derivation: Derivation | undefined;
	readonly #foreign: PlannedForeign[] = [];
	/** New owners that other deployments must authorize. */
	readonly #foreignOwners: ForeignTarget[] = [];
	readonly #released: OutgoingReference[] = [];
	readonly #handled: string[] = [];
	readonly #missing: string[] = [];
	/** The targets that take room in the batch, as `keyString`s, however many fields name each of them. */
	readonly #batch = new Set<string>();
	#isMore = false;
	#established: ReadonlyMap<string, Establishment> = new Map();

	/** @param derivation - if given, missing targets are recorded as such. */
	constructor(
		context: ConstraintContext,
		plan: CommitPlan,
		scope: CommitScope,
		derivation?: Derivation,
	) {
		this.#context = context;
		this.#plan = plan;
		this.#scope = scope;
		this.#derivation = derivation;
	}

	/** The existing targets of new references, as `keyString`s. */
	get handled(): readonly string[] {
		return this.#handled;
	}

	/** The targets that had to be established again and are missing, as `keyString`s. */
	get missing(): readonly string[] {
		return this.#missing;
	}

	/** Whether there are more new references than fit in one commit, and another one would get further. */
	get continues(): boolean {
		return this.#isMore && this.#handled.length + this.#missing.length > 0;
	}

	/** The references that this commit removes. */
	get released(): readonly OutgoingReference[] {
		return this.#released;
	}

	/** The establishments at other deployments for this commit. */
	get established(): readonly { readonly target: ResourceKey; readonly by: Establishment }[] {
		return this.#foreign.flatMap((each) => {
			const by = this.#established.get(establishmentKey(each));
			return by === undefined ? [] : [{ target: each.target, by }];
		});
	}

	/** Removes all references of a resource. */
	releaseAll(shadow: Shadow | undefined): void {
		this.#released.push(...(shadow?.outgoing ?? []));
	}

	/**
	 * Plans the references of a resource that is written.
	 *
	 * @param stored - the resource that it replaces, whose references need no authorization.
	 * @throws Refused InvalidArgument, FailedPrecondition or PermissionDenied if a reference is not allowed;
	 *   RetryableConflict if the deletion of a target is being checked.
	 */
	async add(resource: Resource, stored?: Resource): Promise<void> {
		const key = keyOf(resource.id ?? { name: "" }, this.#context.environment.self.region);
		const declared = locateReferences(this.#context, resource);
		const creates = this.#scope.created.has(keyString(key));
		if (creates && declared.length === 0 && resource.ownerReferences.length === 0) {
			return;
		}
		const edit = await this.#plan.shadow(key);
		edit.asserted = true;
		const shadow = edit.next ?? newShadow(key, resource.id?.uid ?? "");
		const metaOwners = metaOwnersOf(this.#context, resource, shadow.metaOwners);
		const isNew = (owner: MetaOwner) => !shadow.metaOwners.some((each) => sameOwner(each, owner));
		if (metaOwners.some((each) => each.ownerUid === "" && isNew(each))) {
			throw new Refused(
				Code.InvalidArgument,
				"resource.owner_references: uid is required: an owner is one incarnation of its name",
			);
		}
		const authorization = new ReferenceAuthorization(
			this.#context,
			this.#scope.caller,
			resource,
			stored,
		);
		for (const owner of authorization.isNeeded
			? metaOwners.filter((each) => creates || isNew(each))
			: []) {
			const foreign = await authorization.enforceOwner(owner);
			if (foreign !== undefined) {
				this.#foreignOwners.push(foreign);
			}
		}
		const { located, unlocated } = locatedOf(this.#context, resource, declared, shadow.outgoing);
		const outgoing: OutgoingReference[] = [];
		const earlier = new Set<OutgoingReference>();
		for (const reference of unlocated) {
			const planned = await this.#planUnlocated(reference, edit, authorization);
			if (planned !== "foreign") {
				outgoing.push(planned);
			}
		}
		const held = this.#heldOf(shadow, located, resource, stored);
		const holder = { held, authorization };
		for (const reference of this.#inOrder(located, unlocated, holder)) {
			const planned = await this.#planOne(reference, holder);
			if (planned === "foreign") {
				this.#foreign.push({ ...(await this.#planForeign(reference, holder)), edit });
				this.#batch.add(keyString(reference.target));
			} else if (planned.rule === reference.rule) {
				outgoing.push(planned);
			} else {
				earlier.add(planned);
			}
		}
		this.#fillIn(edit, shadow, { located, unlocated, outgoing, earlier, metaOwners });
	}

	/** What the references hold. A derivation writes nothing. */
	#heldOf(
		{ outgoing }: Shadow,
		located: readonly LocatedReference[],
		resource: Resource,
		stored: Resource | undefined,
	): HeldReferences {
		const { environment } = this.#context;
		const recorded = new RecordedReferences(outgoing);
		if (this.#derivation !== undefined) {
			return new HeldReferences(recorded, located);
		}
		return new HeldReferences(recorded, located, {
			references: () => (stored === undefined ? [] : this.#referencesOf(stored, outgoing)),
			isOtherVersion: stored?.id?.type?.groupVersion !== resource.id?.type?.groupVersion,
			isDeploymentKnown: ({ deploymentUid }) =>
				deploymentUid === "" ||
				environment.byUid(responsibleUid(environment, deploymentUid)) !== undefined,
		});
	}

	#referencesOf(stored: Resource, outgoing: Shadow["outgoing"]): readonly LocatedReference[] {
		const declared = locateReferences(this.#context, stored);
		return locatedOf(this.#context, stored, declared, outgoing).located;
	}

	/**
	 * The references in the order in which a derivation plans them. First those that the shadow has with the rule of an earlier
	 * schema: each of them takes room in the batch only once, whatever becomes of it.
	 *
	 * Invariant: if one of them is left for later, the batch is full of such ones, and the derivation continues. Targets that are
	 * missing, and looked up again, can fill a batch that gets no further: then it ends, and only such ones are left.
	 */
	#inOrder(
		located: readonly LocatedReference[],
		unlocated: readonly OutgoingReference[],
		{ held }: Holder,
	): readonly LocatedReference[] {
		// Then the order does not matter.
		const fits = located.length + unlocated.length <= derivationBatchSize;
		if (this.#derivation === undefined || fits) {
			return located;
		}
		const groups = Map.groupBy(
			rotated(located, this.#context.runtime, derivationBatchSize),
			(reference) => (held.earlierOf(reference) === undefined ? "rest" : "earlier"),
		);
		return (["earlier", "rest"] as const).flatMap((group) => groups.get(group) ?? []);
	}

	/** Puts the planned references of a resource into its shadow, if they differ. */
	#fillIn(edit: ShadowEdit, shadow: Shadow, planned: Planned): void {
		const { located, unlocated, earlier, metaOwners } = planned;
		const outgoing = [...planned.outgoing, ...earlier];
		const recorded = new Set(shadow.outgoing);
		const isSame =
			outgoing.length === shadow.outgoing.length &&
			outgoing.length === unlocated.length + located.length &&
			outgoing.every((each) => recorded.has(each)) &&
			metaOwners.length === shadow.metaOwners.length &&
			metaOwners.every((each, i) => each === shadow.metaOwners[i]);
		if (isSame) {
			return;
		}
		if (shadow.lifecycle === Lifecycle.CHECKING) {
			throw new RetryableConflict("a deletion of it is being checked");
		}
		const left = new Set(
			[...located, ...unlocated].map(({ target }) => target && keyString(target)),
		);
		const isLeft = (target: ResourceKey | undefined) => left.has(target && keyString(target));
		this.#released.push(...shadow.outgoing.filter(({ target }) => !isLeft(target)));
		const tasks = shadow.tasks.filter(
			({ task }) => task.case === "confirm" && isLeft(task.value.target),
		);
		const lookUps = new Map(
			outgoing.flatMap(({ target, targetUid }) =>
				target === undefined || targetUid !== "" ? [] : [[keyString(target), target] as const],
			),
		);
		const [first] = earlier;
		if (
			first?.target !== undefined &&
			!isPlanted("leave rules of an earlier schema without a task")
		) {
			// One is enough: it derives all references, and the shadow of thousands has no room for one each.
			lookUps.set(keyString(first.target), first.target);
		}
		tasks.push(...[...lookUps.values()].map(resolveTask));
		// Other resources of this commit may have added sources to the planned shadow meanwhile.
		const { sources } = edit.next ?? shadow;
		edit.next = { ...shadow, sources, outgoing: [...outgoing], metaOwners, tasks };
	}

	/**
	 * The record of a reference for the shadow; "foreign" if another deployment must establish it.
	 *
	 * Invariant: a reference that this commit leaves for later keeps the incarnation that it holds. If a new schema has changed
	 * the rule, that is in a record with the rule of before, which stays as it is.
	 */
	async #planOne(
		reference: LocatedReference,
		holder: Holder,
	): Promise<OutgoingReference | "foreign"> {
		const { held, authorization } = holder;
		const { runtime } = this.#context;
		const { target, wrongType } = reference;
		const derives = this.#derivation !== undefined;
		const mustReestablish = this.#mustReestablish(reference, held);
		const known = inField(reference, held.recordOf(reference));
		const mayWait = () => derives || known?.targetUid === "" || isUnrecorded(reference, held);
		const unresolved = () =>
			known?.targetUid === ""
				? known
				: missingReference(reference, known ?? held.lostOf(reference), runtime.clock);
		if (wrongType !== undefined) {
			if (!mayWait()) {
				throw refuseType(reference, wrongType);
			}
			return unresolved();
		}
		const isOwn = isLocal(this.#context, reference);
		const isNew = isNewFor(reference, known, holder);
		if (isNew && isOwn) {
			authorization.enforce(reference);
		}
		if (known !== undefined && known.targetUid !== "" && !mustReestablish && !isNew) {
			return known;
		}
		// The resource had it before. Whether its target exists must not show: it is looked up after the commit.
		const isUnseen =
			authorization.isNeeded && !isNew && !(isOwn && authorization.allows(reference));
		// A write has room for as many of those that the resource had before as a derivation. A task looks up the others.
		const mayBeLater = isOwn ? mayWait() : derives;
		const isLeft = isUnseen || this.#isOfOther(reference, held);
		if (isLeft || (mayBeLater && this.#isForLater(target))) {
			return this.#leftOf(reference, known, held) ?? unresolved();
		}
		if (isOwn) {
			return this.#planLocal(reference, holder, mayWait() ? unresolved() : undefined);
		}
		if (!derives && mayWait()) {
			// The owned-pending handler looks up targets that were missing when they were derived.
			return this.#leftOf(reference, known, held) ?? unresolved();
		}
		if (derives && !isDeploymentKnown(this.#context, reference)) {
			const record = held.of(reference);
			return record === undefined ? unresolved() : this.#planAbsent(reference, record);
		}
		return "foreign";
	}

	async #planForeign(
		reference: LocatedReference,
		{ held: allHeld, authorization }: Holder,
	): Promise<Omit<PlannedForeign, "edit">> {
		const held = allHeld.of(reference);
		const isAgain = this.#mustReestablish(reference, allHeld);
		return {
			...reference,
			isCrossTenancy: authorization.isCrossTenancy(reference.target),
			known: allHeld.recordOf(reference) ?? held ?? allHeld.lostOf(reference),
			isAgain,
			...(isAgain ? { heldUid: held?.targetUid } : { ifMissing: held }),
			...(await this.#storing(reference, held, isAgain)),
		};
	}

	/** The record of a reference that is left for later, if it holds a target. */
	#leftOf(
		reference: LocatedReference,
		known: OutgoingReference | undefined,
		held: HeldReferences,
	): OutgoingReference | undefined {
		return known?.targetUid ? known : this.#earlierOf(reference, held);
	}

	/** The record of a reference that is left for later, with the rule of an earlier schema, if it holds a target by that. */
	#earlierOf(reference: LocatedReference, held: HeldReferences): OutgoingReference | undefined {
		if (
			isPlanted("lose the targets of changed rules between two commits") &&
			this.#derivation !== undefined
		) {
			return undefined;
		}
		if (
			isPlanted("lose the targets of changed rules in writes of users") &&
			this.#derivation === undefined
		) {
			return undefined;
		}
		return inField(reference, held.earlierOf(reference));
	}

	/**
	 * A reference to a service that is not imported: what stores its target is known from its record alone. It still
	 * counts, and blocks. So a successor of the recorded deployment gets it like any other, and so does any successor that
	 * may be one, because the deployments between them are not known any longer: if it has the incarnation that is held.
	 */
	async #planUnlocated(
		recorded: OutgoingReference,
		edit: ShadowEdit,
		authorization: ReferenceAuthorization,
	): Promise<OutgoingReference | "foreign"> {
		const { path, field, target, targetUid, rule, deploymentUid } = recorded;
		const { environment } = this.#context;
		// This deployment itself stores the targets for which none is recorded.
		const isForeign = targetUid !== "" && deploymentUid !== "";
		if (!(isForeign && target && this.#derivation?.reestablish(target, deploymentUid))) {
			return recorded;
		}
		if (this.#isForLater(target)) {
			return recorded;
		}
		const responsible = environment.byUid(responsibleUid(environment, deploymentUid));
		const deployment = responsible ?? this.#derivation.successor;
		if (deployment === undefined) {
			return this.#planAbsent({ path, field, target, rule }, recorded);
		}
		const isGuess = responsible === undefined;
		this.#batch.add(keyString(target));
		this.#foreign.push({
			...{ path, field, target, rule, deployment, edit, isGuess, isAgain: true, known: recorded },
			groupVersion: "",
			isCrossTenancy: authorization.isCrossTenancy(target),
			heldUid: targetUid,
			ifMissing: isGuess ? recorded : undefined,
		});
		return "foreign";
	}

	/**
	 * The first reference adds the deployment to the target's shadow; later ones assert that it is there.
	 *
	 * @param unresolved - the record for a missing target. Without it, a missing target is refused.
	 */
	async #planLocal(
		reference: LocatedReference,
		{ held, authorization }: Holder,
		unresolved: OutgoingReference | undefined,
	): Promise<OutgoingReference> {
		const { environment } = this.#context;
		const { path, target, rule } = reference;
		const text = keyString(target);
		const created = this.#scope.created.get(text);
		const resource = created ?? (await this.#find(target));
		const edit = await this.#plan.shadow(target);
		if (resource === undefined) {
			if (unresolved !== undefined) {
				return unresolved;
			}
			throw refuse(`${path} references ${displayKey(target)}, which does not exist`);
		}
		authorization.enforceWith(reference, resource);
		const uid = resource.id?.uid ?? "";
		// Another field may reference the same copy by another rule: that does not let this one hold up its removal.
		const isHeld = () => held.of(reference)?.targetUid === uid;
		if (isBlockedCopy(resource, rule) && !isHeld()) {
			if (unresolved !== undefined) {
				return unresolved;
			}
			// Its original is deleted whatever references it.
			throw refuse(
				`${path} references ${displayKey(target)}, which is a copy of a resource of another cluster: only CASCADE and UNSET references to it are possible`,
			);
		}
		if (created === undefined && edit.next !== undefined && edit.next.uid !== uid) {
			throw new RetryableConflict(`${displayKey(target)} was replaced by another incarnation`);
		}
		if (edit.next?.lifecycle === Lifecycle.CHECKING) {
			throw new RetryableConflict(`the deletion of ${displayKey(target)} is being checked`);
		}
		if (
			isMarkedForDeletion(resource) ||
			edit.next?.lifecycle === Lifecycle.DELETING ||
			this.#scope.deleted.has(text)
		) {
			if (unresolved === undefined) {
				throw refuse(`${path} references ${displayKey(target)}, which is being deleted`);
			}
			// What is not held takes no room in the commit: it is planned by each of a derivation.
			if (held.of(reference)?.targetUid !== uid) {
				return unresolved;
			}
			edit.asserted = true;
			this.#handled.push(text);
			this.#batch.add(text);
			return recordOf(reference, { targetUid: uid, deploymentUid: "" });
		}
		edit.asserted = true;
		const shadow = edit.next ?? newShadow(target, uid);
		const source = sourceOf(shadow, environment.self.uid);
		if (!source?.rules.includes(rule)) {
			const others = withoutDeployment(shadow, environment.self.predecessorUid);
			edit.next = withSource(others, {
				deployment: deployedOf(environment.self),
				rules: mergeRules(source?.rules ?? [], [rule]),
			});
			if (created === undefined && resource.id !== undefined) {
				this.#plan.assert(text, {
					op: "assert",
					id: resource.id,
					expectedVersion: resource.version,
				});
			}
		}
		this.#handled.push(text);
		this.#batch.add(text);
		return recordOf(reference, { targetUid: uid, deploymentUid: "" });
	}

	/** A target that is already referenced, and whose deployment is missing from the registry view. */
	async #planAbsent(
		reference: PlannedReference,
		held: OutgoingReference,
	): Promise<OutgoingReference> {
		await this.#assertDeleted(reference, held);
		return recordOf(reference, held);
	}

	/**
	 * That a deployment is missing from the registry view does not mean that the target is gone: the reference waits for
	 * it, unless the deployment was deleted.
	 *
	 * @throws Refused Unavailable if it was not.
	 */
	async #assertDeleted(
		{ path, target }: Pick<LocatedReference, "path" | "target">,
		{ deploymentUid }: OutgoingReference,
	): Promise<void> {
		if (deploymentUid === "" || !(await this.#context.environment.isDeleted(deploymentUid))) {
			throw new Refused(
				Code.Unavailable,
				`${path} references ${displayKey(target)}, whose deployment is currently unknown`,
			);
		}
	}

	/**
	 * Calls the other deployments to authorize the caller and to establish the planned references. The guards
	 * of the targets are read before: a "no" in between changes them, and fails this commit. So does the record that
	 * another deployment has taken over from one of them, which knows nothing of what is established with it, and the
	 * record that this deployment has given up the uid under which they are established.
	 *
	 * @param beforeEstablishing - awaited before other deployments change anything. Then the plan names each record that the commit
	 *   changes or asserts, other than the descriptor and the deployment's own record.
	 * @throws the errors of `establish` in `establish-references.ts`, and of `beforeEstablishing`.
	 */
	async establish(beforeEstablishing?: () => Promise<void>): Promise<void> {
		const { caller, dryRun } = this.#scope;
		if (caller !== undefined) {
			// References that are established are authorized by the same call.
			const toDecide = dryRun ? [...this.#foreignOwners, ...this.#foreign] : this.#foreignOwners;
			await authorize(this.#context, toDecide, caller);
		}
		if (this.#foreign.length === 0 || dryRun) {
			return;
		}
		for (const uid of new Set(this.#foreign.map(({ deployment }) => deployment.uid))) {
			this.#assertResponsible(uid);
			this.#plan.assert(`dropped ${uid}`, this.#context.dropped.notDropped(uid));
		}
		await this.#assertGuards();
		await beforeEstablishing?.();
		const toleratesMissing = this.#derivation !== undefined;
		this.#established = await establish(this.#context, this.#foreign, caller, toleratesMissing);
		if (isPlanted("read the guard after establishing")) {
			await this.#assertGuards();
		}
		for (const assert of await assertUid(this.#context)) {
			this.#plan.assert(deploymentRecord, assert);
		}
		const records = new Map<ShadowEdit, PlannedRecord[]>();
		for (const reference of this.#foreign) {
			const { edit } = reference;
			records.set(edit, records.get(edit) ?? []);
			records.get(edit)?.push(this.#recordOf(reference));
		}
		for (const [edit, added] of records) {
			if (edit.next === undefined) {
				throw new Error(`the references of ${edit.name} were not established`);
			}
			const { length } = edit.next.outgoing;
			const isConfirmed =
				this.#derivation === undefined ||
				length + added.length <= maxConfirmedReferences ||
				isPlanted("confirm all references that are established again");
			edit.next = withRecords(edit.next, added, isConfirmed);
		}
	}

	/** What is recorded of a reference after the calls to the other deployments. */
	#recordOf(reference: PlannedForeign): PlannedRecord {
		const { target, deployment, heldUid, known, ifMissing, isAgain, isGuess } = reference;
		const established = this.#established.get(establishmentKey(reference));
		if (established !== undefined && !(isGuess && established.uid !== heldUid)) {
			this.#handled.push(keyString(target));
			return recordEstablished(reference, established);
		}
		if (isAgain) {
			this.#missing.push(keyString(target));
		} else if (
			ifMissing !== undefined &&
			!isPlanted("end a derivation at targets that are being deleted")
		) {
			// Its deletion has begun, and waits for this reference. From now on, that is recorded by the active rule.
			this.#handled.push(keyString(target));
		}
		const { clock } = this.#context.runtime;
		return ifMissing === undefined
			? recordMissing(missingReference(reference, known, clock, deployment.uid))
			: recordHeld(reference, ifMissing);
	}

	/** Fails the commit if a guard of one of its targets changes from now on. */
	async #assertGuards(): Promise<void> {
		const targets = this.#foreign.map(({ target }) => target);
		for (const guard of await this.#context.guards.asserts(targets)) {
			this.#plan.assert((guard.op === "put" ? guard.resource.id : guard.id)?.name ?? "", guard);
		}
	}

	/** The registry view of this server may lack a successor that another server of this deployment knows. */
	#assertResponsible(uid: string): void {
		const successorUid = this.#context.dropped.successorOf(uid);
		if (successorUid !== undefined) {
			const problem = `deployment ${uid} was taken over by ${successorUid}, which this server does not know yet`;
			throw new Refused(Code.Unavailable, `nothing was written: ${problem}`);
		}
	}

	/**
	 * Whether this commit leaves the target as it is: it was missing already, or the batch is full. All
	 * references to one target are in one batch: the later ones do not establish again what an earlier one has.
	 */
	#isForLater(target: KeyLike): boolean {
		if (isPlanted("look up all changed rules in one write") && this.#derivation === undefined) {
			return false;
		}
		if (this.#derivation?.isMissing?.(target)) {
			return true;
		}
		if (this.#batch.has(keyString(target))) {
			return false;
		}
		const isFull = this.#batch.size >= derivationBatchSize;
		this.#isMore ||= isFull;
		return isFull;
	}

	#mustReestablish(reference: LocatedReference, held: HeldReferences): boolean {
		const deploymentUid = held.of(reference)?.deploymentUid ?? "";
		return this.#derivation?.reestablish(reference.target, deploymentUid) ?? false;
	}

	/**
	 * Whether a report to a successor leaves a reference as it is: another deployment decides about it, and need not respond.
	 * Where several are found in its place, that is so for one that holds nothing yet.
	 */
	#isOfOther(reference: LocatedReference, held: HeldReferences): boolean {
		const successor = this.#derivation?.successor;
		if (successor === undefined || isPlanted("look up all missing targets in a report")) {
			return false;
		}
		const { environment } = this.#context;
		const service = reference.service || environment.self.service;
		const isFoundElsewhere = () =>
			held.of(reference) === undefined &&
			environment.find(service, reference.target.region)?.uid !== successor.uid;
		return !this.#mustReestablish(reference, held) || isFoundElsewhere();
	}

	/**
	 * Which deployment establishes a reference, and what else is planned if that is a guess. A reference that is held stays
	 * with the deployment that it records, or its successor: another one of the same service and region, with another
	 * storage, may be found first, and knows nothing of the target. If neither is known, the reference waits for them,
	 * unless the recorded one was deleted. Then the others of the place decide nothing, and neither does a successor of which
	 * it is not known whether it is theirs: one gets the reference only if it has the incarnation that is held.
	 *
	 * @param isAgain - whether the derivation must establish it again. Only then may its successor be the deployment.
	 */
	async #storing(
		reference: LocatedReference,
		held: OutgoingReference | undefined,
		isAgain: boolean,
	): Promise<Pick<PlannedForeign, "deployment" | "heldUid" | "ifMissing" | "isGuess">> {
		const { environment } = this.#context;
		if (
			held === undefined ||
			held.deploymentUid === "" ||
			(isPlanted("establish again with whichever deployment is found") && isAgain) ||
			(isPlanted("establish changed rules with whichever deployment is found") && !isAgain)
		) {
			return { deployment: deploymentOf(this.#context, reference) };
		}
		const responsible = environment.byUid(responsibleUid(environment, held.deploymentUid));
		if (responsible !== undefined) {
			return { deployment: responsible };
		}
		const successor = isAgain ? this.#derivation?.successor : undefined;
		if (
			successor === undefined &&
			!isPlanted("establish again elsewhere while a deployment is not known")
		) {
			await this.#assertDeleted(reference, held);
		}
		return {
			deployment: successor ?? deploymentOf(this.#context, reference),
			heldUid: held.targetUid,
			ifMissing: held,
			isGuess: true,
		};
	}

	async #find(key: KeyLike): Promise<Resource | undefined> {
		const { backend } = this.#context;
		const name = nameOfKey(key);
		return (await backend.lookup(name)) ?? backend.lookup(name, { consistency: "strong" });
	}
}

/** Whether the caller must be allowed to name the target: the write adds the reference, and does not move it from another field. */
function isNewFor(
	reference: LocatedReference,
	known: OutgoingReference | undefined,
	{ held, authorization }: Holder,
): boolean {
	return authorization.isNeeded && known === undefined && held.isAdded(reference);
}

/**
 * Whether the resource has the reference already, without a record: the active schema is not complete. A write is about something
 * else, and must not wait for the target.
 */
function isUnrecorded(reference: LocatedReference, held: HeldReferences): boolean {
	return !(held.isAdded(reference) || isPlanted("look up changed rules in writes"));
}

function refuse(message: string): Refused {
	return new Refused(Code.FailedPrecondition, message);
}

/** Whether a reference would block the deletion of a copy. That is not possible, and a held one stays, until its copy is gone. */
function isBlockedCopy({ origin }: Resource, rule: OnDelete): boolean {
	return origin !== undefined && rule === OnDelete.BLOCK && !isPlanted("reference copies by BLOCK");
}

/**
 * The record of a reference that may be in another field by now, or is of a server before revision 4. Only the holder knows
 * the field and the type that it names: nothing else changes.
 */
function inField(
	{ path, field, wrongType = "" }: PlannedReference,
	known: OutgoingReference | undefined,
): OutgoingReference | undefined {
	if (known === undefined) {
		return undefined;
	}
	const { missing, targetUid } = known;
	if (targetUid === "" && (missing?.wrongType ?? "") !== wrongType) {
		const next = missing ?? create(MissingTargetSchema);
		return { ...known, path, field, missing: { ...next, wrongType } };
	}
	return known.path === path && known.field === field ? known : { ...known, path, field };
}
