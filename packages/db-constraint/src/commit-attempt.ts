import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	Lifecycle,
	type OutgoingReference,
	OutgoingReferenceSchema,
	type Shadow,
	type Task,
	TaskSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { addFinalizer, hasFinalizer, isMarkedForDeletion } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import {
	CasFailure,
	type Commit,
	type CommitOptions,
	type Mutation,
	Refused,
	WrongUid,
} from "@plinth/storage";
import type { Asking } from "./asking.ts";
import { Busy } from "./busy.ts";
import { CommitPlan, type ShadowEdit } from "./commit-plan.ts";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext, Release } from "./constraint-context.ts";
import { checkDeletion, takeBack } from "./deletion-check.ts";
import { assertDescriptor } from "./descriptor-record.ts";
import { type Establishment, establish, type ForeignReference } from "./establishing.ts";
import {
	deploymentOf,
	isKept,
	isLocal,
	type LocatedReference,
	locatedOf,
	locateReferences,
	refuseType,
} from "./outgoing.ts";
import { metaOwnersOf } from "./owner-references.ts";
import {
	isTombstoneOf,
	markedWithReferences,
	withReferencesAlone,
	withStoredFinalizer,
} from "./removals.ts";
import { condition, statusKey, withCondition } from "./reported-status.ts";
import { displayKey, type KeyLike, keyOf, keyString, nameOfKey } from "./resource-key.ts";
import {
	deployedOf,
	isHeld,
	mergeRules,
	newShadow,
	referencesFinalizer,
	sameReference,
	sameTarget,
	shadowName,
	sourceOf,
	withoutDeployment,
	withSource,
} from "./shadow.ts";
import { lookup, ResourceShadow, type StoredShadow } from "./shadow-records.ts";
import { assertMayDelete } from "./succession.ts";

/** The condition that says whether all references of a resource have targets. */
const resolved = "ReferencesResolved";

/** How many new references one commit derives: each takes up to three of its mutations. */
const derivedAtOnce = 25;

/** One attempt at a commit: everything is read anew, and the commit asserts what it depends on. */
export class CommitAttempt {
	readonly #context: ConstraintContext;
	readonly #asking: Asking;
	readonly #given: readonly Mutation[];
	readonly #options: CommitOptions;
	readonly #plan: CommitPlan;
	/** What becomes of each of the caller's mutations; `undefined` where it is left out. */
	readonly #own: (Mutation | undefined)[];
	/** What this commit creates, by key. */
	readonly #created = new Map<string, Resource>();
	/** What this commit deletes or marks, by key. */
	readonly #deleted = new Set<string>();
	readonly #checks: { readonly checking: StoredShadow; readonly before: Shadow }[] = [];
	readonly #foreign: (ForeignReference & { readonly edit: ShadowEdit })[] = [];
	#released: readonly Release[] = [];
	/** The targets of new references, as far as they are there. */
	readonly #handled: string[] = [];
	/** Whether there are more new references than one commit derives. */
	#isMore = false;
	/** Of which targets references are established anew, even where the shadow has them. */
	#anew: (target: KeyLike) => boolean = () => false;
	#established: ReadonlyMap<string, Establishment> = new Map();
	/** The positions of the caller's mutations among those that are committed. */
	#positions: readonly number[] = [];

	constructor(
		context: ConstraintContext,
		asking: Asking,
		mutations: readonly Mutation[],
		options: CommitOptions,
	) {
		this.#context = context;
		this.#asking = asking;
		this.#given = mutations;
		this.#options = options;
		this.#own = [...mutations];
		this.#plan = new CommitPlan(context.backend, context.runtime);
	}

	/** @throws Busy, or what the storage throws: see `isConflictOfOurs`. */
	async run(): Promise<Commit> {
		for (const mutation of this.#given) {
			if (mutation.op === "put" && mutation.expectedVersion === "") {
				this.#created.set(this.#keyString(mutation.resource.id), mutation.resource);
			}
		}
		await this.#takeShadowAsserts();
		for (const [at, mutation] of this.#given.entries()) {
			if (mutation.op === "delete") {
				await this.#planDelete(at, mutation);
			}
		}
		const [only] = this.#given;
		if (only?.op === "delete" && this.#given.length === 1 && this.#deleted.size === 0) {
			// What is not there, or is another one, the storage knows what to say of: it changes nothing.
			return this.#context.backend.commit(this.#given, this.#options);
		}
		for (const [at, mutation] of this.#given.entries()) {
			if (mutation.op === "put" && this.#own[at] === mutation) {
				await this.#planPut(at, mutation);
			}
		}
		await this.#establishForeign();
		this.#plan.assert("descriptor", await assertDescriptor(this.#context));
		return this.#commit();
	}

	/**
	 * Derives the references of a stored resource anew, and establishes those that its shadow lacks. A
	 * target that is missing is recorded without a uid, and reported in the resource's status. The given
	 * mutation must assert the resource as it was read.
	 *
	 * @returns the targets that were found, and whether there are more to look for, in other commits.
	 * @throws as `run` does.
	 */
	async derive(
		resource: Resource,
		anew: (target: KeyLike) => boolean = () => false,
	): Promise<{ readonly found: readonly string[]; readonly isMore: boolean }> {
		this.#anew = anew;
		await this.#planReferences(resource, true);
		await this.#establishForeign(true);
		this.#plan.assert("descriptor", await assertDescriptor(this.#context));
		const edit = await this.#plan.shadow(this.#key(resource.id));
		edit.next = edit.next && inOrderOf(edit.stored?.shadow, edit.next);
		const shadow = edit.next;
		const missing = shadow?.outgoing.filter(({ targetUid }) => targetUid === "") ?? [];
		const reports = resource.status[statusKey]?.conditions.some(({ type }) => type === resolved);
		if (!this.#isMore && (missing.length > 0 || reports)) {
			const names = missing.map(({ path, target }) => `${path}: ${target && displayKey(target)}`);
			const message = missing.length > 0 ? `missing: ${names.join(", ")}` : "";
			const next = withCondition(
				resource,
				condition(resolved, missing.length === 0, message),
				this.#context.runtime.clock,
			);
			if (next !== undefined) {
				this.#own[0] = { op: "put", resource: next, expectedVersion: resource.version };
			}
		}
		await this.#commit();
		return { found: this.#handled, isMore: this.#isMore };
	}

	/** Makes what asked whether it may be deleted what it was before. */
	async takeBack(): Promise<void> {
		await Promise.all(
			this.#checks.map(({ checking, before }) => takeBack(this.#context, checking, before)),
		);
	}

	/** Tells other deployments that what was established is not going to be committed. */
	giveUp(): void {
		const { hints } = this.#context;
		hints.released(
			this.#foreign.flatMap(({ target, deployment }) => {
				const established = this.#established.get(keyString(target));
				return established === undefined
					? []
					: [{ deploymentUid: deployment.uid, target, targetUid: established.uid }];
			}),
		);
	}

	/** Whether nothing that the caller named has failed, so that beginning again may help. */
	isConflictOfOurs(failure: unknown): boolean {
		return isConflict(failure) && this.#callers(failure).length === 0;
	}

	/** The failure in the caller's terms: conflicts name the caller's mutations. */
	asOfCaller(failure: unknown): unknown {
		if (!isConflict(failure)) {
			return failure;
		}
		const names = [failure.message.slice(failure.message.indexOf(": ") + 2)];
		const positions = this.#callers(failure);
		return failure instanceof CasFailure
			? new CasFailure(positions, names)
			: new WrongUid(positions, names);
	}

	#callers(failure: CasFailure | WrongUid): readonly number[] {
		return failure.mutations.flatMap((index) => this.#positions[index] ?? []);
	}

	async #commit(): Promise<Commit> {
		const own = this.#own.flatMap((mutation, at) => (mutation ? [{ mutation, at }] : []));
		this.#positions = own.map(({ at }) => at);
		const mutations = [...own.map(({ mutation }) => mutation), ...this.#plan.mutations()];
		const { version, resources } = await this.#context.backend.commit(mutations, this.#options);
		if (!this.#options.dryRun) {
			this.#context.hints.released(this.#released);
		}
		const answers = this.#given.map((_, at) => resources[this.#positions.indexOf(at)]);
		return { version, resources: answers };
	}

	/**
	 * Callers may assert the shadow of what they write, which the commit changes itself: it begins with that
	 * version of the shadow, or not at all.
	 */
	async #takeShadowAsserts(): Promise<void> {
		for (const [at, mutation] of this.#given.entries()) {
			if (
				mutation.op !== "assert" ||
				mutation.expectedVersion === undefined ||
				mutation.id.type?.kind !== ResourceShadow.type.kind
			) {
				continue;
			}
			const { id, expectedVersion } = mutation;
			const written = this.#given
				.filter((other) => other.op !== "assert")
				.map((other) => this.#key(other.op === "put" ? other.resource.id : other.id))
				.find((key) => shadowName(key) === id.name);
			if (written === undefined) {
				continue;
			}
			const edit = await this.#plan.shadow(written);
			if ((edit.stored?.version ?? "") !== expectedVersion) {
				this.#positions = this.#given.map((_, position) => position);
				throw new CasFailure([at], [displayKey(written)]);
			}
			edit.asserted = true;
			this.#own[at] = undefined;
		}
	}

	async #planDelete(at: number, mutation: Mutation & { op: "delete" }): Promise<void> {
		const { id, expectedVersion } = mutation;
		const stored = await this.#stored(id, expectedVersion);
		if (
			stored === undefined ||
			stored.version !== expectedVersion ||
			(id.uid !== "" && stored.id?.uid !== id.uid)
		) {
			return;
		}
		const edit = await this.#plan.shadow(this.#key(id));
		edit.asserted = true;
		this.#deleted.add(this.#keyString(id));
		await assertMayDelete(this.#context);
		if (hasFinalizer(stored, referencesFinalizer)) {
			this.#keep(at, stored, withReferencesAlone(this.#context.runtime, stored));
			return;
		}
		const left = await this.#askWhetherItMayGo(edit);
		this.#releaseAll(edit.next);
		if (left.next !== undefined && isHeld(left.next)) {
			this.#keep(at, stored, markedWithReferences(this.#context.runtime, stored));
			left.next = { ...left.next, lifecycle: Lifecycle.DELETING };
		} else {
			left.next = undefined;
		}
	}

	/** Stores the marked resource in place of its removal; whoever removes it writes the tombstone. */
	#keep(at: number, stored: Resource, marked: Resource): void {
		this.#own[at] = { op: "put", resource: marked, expectedVersion: stored.version };
		for (const [other, mutation] of this.#given.entries()) {
			if (isTombstoneOf(mutation, stored)) {
				this.#own[other] = undefined;
			}
		}
	}

	async #planPut(at: number, mutation: Mutation & { op: "put" }): Promise<void> {
		const { expectedVersion } = mutation;
		const { id } = mutation.resource;
		if (id === undefined) {
			return;
		}
		// What the commit creates is not there, or the commit fails.
		const creates = expectedVersion === "";
		const stored = creates ? undefined : await this.#stored(id, expectedVersion);
		const resource = withStoredFinalizer(mutation.resource, stored);
		if (resource !== mutation.resource) {
			this.#own[at] = { ...mutation, resource };
		}
		if (isMarkedForDeletion(resource) && !(stored && isMarkedForDeletion(stored))) {
			await this.#planMark(at, mutation, resource);
			return;
		}
		const owns = resource.ownerReferences.length > 0 || (stored?.ownerReferences.length ?? 0) > 0;
		const wasOther =
			stored !== undefined && stored.id?.type?.groupVersion !== id.type?.groupVersion;
		if (owns || wasOther || this.#context.descriptor.hasReferences(resource)) {
			await this.#planReferences(resource);
		}
	}

	async #planMark(
		at: number,
		mutation: Mutation & { op: "put" },
		resource: Resource,
	): Promise<void> {
		const key = this.#key(resource.id);
		const edit = await this.#plan.shadow(key);
		edit.asserted = true;
		this.#deleted.add(keyString(key));
		await assertMayDelete(this.#context);
		const left = await this.#askWhetherItMayGo(edit);
		const shadow = left.next ?? newShadow(key, resource.id?.uid ?? "");
		if (isHeld(shadow)) {
			const held = { ...resource, metadata: { ...resource.metadata } };
			addFinalizer(held, referencesFinalizer);
			this.#own[at] = { ...mutation, resource: held };
		}
		left.next = { ...shadow, lifecycle: Lifecycle.DELETING };
	}

	/** The shadow as the deletion finds it: without those who have let go. */
	async #askWhetherItMayGo(edit: ShadowEdit): Promise<ShadowEdit> {
		const { stored, next } = edit;
		if (next?.lifecycle === Lifecycle.CHECKING) {
			throw new Busy("another deletion asks whether it may go");
		}
		if (stored === undefined || next === undefined || !isHeld(next)) {
			return edit;
		}
		if (next.lifecycle === Lifecycle.DELETING) {
			return edit;
		}
		const dryRun = this.#options.dryRun ?? false;
		const { checking, left } = await checkDeletion(this.#context, this.#asking, stored, dryRun);
		if (!dryRun) {
			this.#checks.push({ checking, before: stored.shadow });
		}
		const checked = this.#plan.preset(checking);
		checked.next = left;
		return checked;
	}

	/** @param derives - whether targets that are missing are recorded as such. */
	async #planReferences(resource: Resource, derives = false): Promise<void> {
		const key = this.#key(resource.id);
		const declared = locateReferences(this.#context, resource);
		const creates = this.#created.has(keyString(key));
		if (creates && declared.length === 0 && resource.ownerReferences.length === 0) {
			return;
		}
		const edit = await this.#plan.shadow(key);
		edit.asserted = true;
		const shadow = edit.next ?? newShadow(key, resource.id?.uid ?? "");
		const metaOwners = metaOwnersOf(this.#context, resource, shadow.metaOwners);
		if (metaOwners.some((each) => !each.ownerUid && !shadow.metaOwners.includes(each))) {
			throw new Refused(
				Code.InvalidArgument,
				"resource.owner_references: uid is required: an owner is one incarnation of its name",
			);
		}
		const { located, unlocated } = locatedOf(this.#context, resource, declared, shadow.outgoing);
		const outgoing: OutgoingReference[] = [...unlocated];
		for (const reference of derives ? rotated(located, this.#context.runtime) : located) {
			const known = shadow.outgoing.find((other) => sameReference(other, reference));
			const { path, target, rule, wrongType } = reference;
			const isAnew = this.#anew(target);
			const mayMiss = derives || known?.targetUid === "";
			const unresolved = () =>
				known?.targetUid === "" ? known : create(OutgoingReferenceSchema, { path, target, rule });
			if (wrongType !== undefined && !mayMiss) {
				throw refuseType(reference, wrongType);
			}
			if (wrongType !== undefined) {
				outgoing.push(unresolved());
			} else if (known !== undefined && known.targetUid !== "" && !isAnew) {
				outgoing.push(known);
			} else if (derives && this.#handled.length + this.#foreign.length >= derivedAtOnce) {
				this.#isMore = true;
				outgoing.push(known ?? unresolved());
			} else if (isLocal(this.#context, reference)) {
				outgoing.push(await this.#planLocal(reference, shadow, mayMiss ? unresolved() : undefined));
			} else if (mayMiss && (derives ? !isKept(this.#context, reference) : !isAnew)) {
				// The owned-pending handler looks for what had no target when it was derived.
				const held = derives ? outgoingTo(shadow, target) : undefined;
				outgoing.push(held === undefined ? unresolved() : await this.#planAbsent(reference, held));
			} else {
				const deployment = deploymentOf(this.#context, reference);
				this.#foreign.push({ ...reference, deployment, edit });
			}
		}
		const gone = shadow.outgoing.filter(
			(old) =>
				!unlocated.includes(old) && !located.some(({ target }) => sameTarget(target, old.target)),
		);
		const isSame =
			outgoing.length === shadow.outgoing.length &&
			outgoing.length === unlocated.length + located.length &&
			outgoing.every((each, i) => each === shadow.outgoing[i] || shadow.outgoing.includes(each)) &&
			metaOwners.length === shadow.metaOwners.length &&
			metaOwners.every((each, i) => each === shadow.metaOwners[i]);
		if (isSame) {
			return;
		}
		if (shadow.lifecycle === Lifecycle.CHECKING) {
			throw new Busy("a deletion asks whether it may go");
		}
		this.#release(gone);
		const tasks = shadow.tasks.filter(
			({ task }) =>
				task.case === "confirm" &&
				located.some(({ target }) => sameTarget(target, task.value.target)),
		);
		for (const { target, targetUid } of outgoing) {
			if (targetUid === "" && target !== undefined) {
				tasks.push(create(TaskSchema, { task: { case: "resolve", value: { target } } }));
			}
		}
		// The plan's own shadow may have got sources from other resources of this commit meanwhile.
		edit.next = { ...shadow, sources: (edit.next ?? shadow).sources, outgoing, metaOwners, tasks };
	}

	/**
	 * The first reference puts the deployment on the target's shadow; later ones assert that it is there.
	 *
	 * @param unresolved - what is recorded where there is no such target; refused where it is absent.
	 */
	async #planLocal(
		{ path, target, rule }: LocatedReference,
		from: Shadow,
		unresolved: OutgoingReference | undefined,
	): Promise<OutgoingReference> {
		const { environment } = this.#context;
		const text = keyString(target);
		const created = this.#created.get(text);
		const resource = created ?? (await this.#find(target));
		const edit = await this.#plan.shadow(target);
		if (resource === undefined) {
			if (unresolved !== undefined) {
				return unresolved;
			}
			throw refuse(`${path} references ${displayKey(target)}, which does not exist`);
		}
		const uid = resource.id?.uid ?? "";
		if (created === undefined && edit.next !== undefined && edit.next.uid !== uid) {
			throw new Busy(`${displayKey(target)} was replaced by another one meanwhile`);
		}
		edit.asserted = true;
		if (edit.next?.lifecycle === Lifecycle.CHECKING) {
			throw new Busy(`a deletion asks whether ${displayKey(target)} may go`);
		}
		if (
			isMarkedForDeletion(resource) ||
			edit.next?.lifecycle === Lifecycle.DELETING ||
			this.#deleted.has(text)
		) {
			if (unresolved !== undefined) {
				return uidHeld(from, target) === uid ? { ...unresolved, targetUid: uid } : unresolved;
			}
			throw refuse(`${path} references ${displayKey(target)}, which is being deleted`);
		}
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
		return create(OutgoingReferenceSchema, { path, target, targetUid: uid, rule });
	}

	/**
	 * A target that is referenced already, by another rule, and whose deployment the picture lacks. That
	 * says nothing of the target: the reference waits for its deployment, unless that was deleted.
	 */
	async #planAbsent(
		{ path, target, rule }: LocatedReference,
		{ targetUid, deploymentUid }: OutgoingReference,
	): Promise<OutgoingReference> {
		if (deploymentUid === "" || !(await this.#context.environment.isDeleted(deploymentUid))) {
			throw new Refused(
				Code.Unavailable,
				`${path} references ${displayKey(target)}, whose deployment is not known now`,
			);
		}
		return create(OutgoingReferenceSchema, { path, target, rule, targetUid, deploymentUid });
	}

	async #establishForeign(toleratesMissing = false): Promise<void> {
		if (this.#foreign.length === 0 || this.#options.dryRun) {
			return;
		}
		const { guards } = this.#context;
		const targets = this.#foreign.map(({ target }) => target);
		for (const guard of await guards.asserts(targets)) {
			this.#plan.assert((guard.op === "put" ? guard.resource.id : guard.id)?.name ?? "", guard);
		}
		this.#established = await establish(this.#context, this.#foreign, toleratesMissing);
		for (const { edit, path, target, rule } of this.#foreign) {
			const established = this.#established.get(keyString(target));
			if (edit.next === undefined) {
				throw new Error(`${displayKey(target)} was not established`);
			}
			if (established === undefined) {
				const held = this.#anew(target) ? undefined : outgoingTo(edit.stored?.shadow, target);
				const { targetUid = "", deploymentUid = "" } = held ?? {};
				const missing = create(OutgoingReferenceSchema, {
					path,
					target,
					targetUid,
					rule,
					deploymentUid,
				});
				const task = create(TaskSchema, { task: { case: "resolve", value: { target } } });
				edit.next = {
					...edit.next,
					outgoing: [...edit.next.outgoing, missing],
					tasks: held === undefined ? [...edit.next.tasks, task] : edit.next.tasks,
				};
				continue;
			}
			this.#handled.push(keyString(target));
			const { uid, number, deployment } = established;
			const reference = create(OutgoingReferenceSchema, {
				path,
				target,
				targetUid: uid,
				rule,
				deploymentUid: deployment.uid,
			});
			const confirm = create(TaskSchema, {
				task: {
					case: "confirm",
					value: {
						target,
						targetUid: uid,
						deployment: deployedOf(deployment),
						establishment: number,
					},
				},
			});
			const shadow = edit.next;
			edit.next = {
				...shadow,
				outgoing: [...shadow.outgoing, reference],
				tasks: [
					...shadow.tasks.filter(
						({ task }) => task.case !== "confirm" || !sameTarget(task.value.target, target),
					),
					confirm,
				],
			};
		}
	}

	#releaseAll(shadow: Shadow | undefined): void {
		this.#release(shadow?.outgoing ?? []);
	}

	#release(outgoing: readonly OutgoingReference[]): void {
		const { descriptor, environment } = this.#context;
		this.#released = [
			...this.#released,
			...outgoing.flatMap(({ target, targetUid }) => {
				const service = target && descriptor.serviceOfGroup(target.group);
				if (target === undefined || service === undefined) {
					return [];
				}
				const keeper = environment.find(service || environment.self.service, target.region);
				return keeper === undefined || keeper.uid === environment.self.uid
					? []
					: [{ deploymentUid: keeper.uid, target, targetUid }];
			}),
		];
	}

	/** What is stored; read strongly where it does not look like what the caller has seen. */
	async #stored(id: NonNullable<Resource["id"]>, expected: string): Promise<Resource | undefined> {
		const { backend } = this.#context;
		const stored = await lookup(backend, id);
		return (stored?.version ?? "") === expected
			? stored
			: lookup(backend, id, { consistency: "strong" });
	}

	async #find(key: KeyLike): Promise<Resource | undefined> {
		const { backend } = this.#context;
		const name = nameOfKey(key);
		return (await lookup(backend, name)) ?? lookup(backend, name, { consistency: "strong" });
	}

	#key(id: Resource["id"]) {
		return keyOf(id ?? { name: "" }, this.#context.environment.self.region);
	}

	#keyString(id: Resource["id"]): string {
		return keyString(this.#key(id));
	}
}

/** The uid of the incarnation of a target that a resource references; `undefined` where it does not. */
function uidHeld(from: Shadow | undefined, target: KeyLike): string | undefined {
	return outgoingTo(from, target)?.targetUid;
}

/** A reference to that target that has a uid. */
function outgoingTo(from: Shadow | undefined, target: KeyLike): OutgoingReference | undefined {
	return from?.outgoing.find((each) => each.targetUid !== "" && sameTarget(each.target, target));
}

/**
 * The shadow with its references and tasks in the order of another one: in which order they were derived
 * changes nothing, and must not bring another pass about.
 */
function inOrderOf(before: Shadow | undefined, shadow: Shadow): Shadow {
	if (before === undefined) {
		return shadow;
	}
	const references = new Map(
		before.outgoing.map(({ target, rule }, at) => [`${target && keyString(target)} ${rule}`, at]),
	);
	const tasks = new Map(before.tasks.map((task, at) => [nameOfTask(task), at]));
	const end = Number.MAX_SAFE_INTEGER;
	const placeOf = ({ target, rule }: OutgoingReference) =>
		references.get(`${target && keyString(target)} ${rule}`) ?? end;
	const placeOfTask = (task: Task) => tasks.get(nameOfTask(task)) ?? end;
	return {
		...shadow,
		outgoing: shadow.outgoing.toSorted((a, b) => placeOf(a) - placeOf(b)),
		tasks: shadow.tasks.toSorted((a, b) => placeOfTask(a) - placeOfTask(b)),
	};
}

function nameOfTask({ task }: Task): string {
	const target = task.case === "confirm" || task.case === "resolve" ? task.value.target : undefined;
	return `${task.case} ${target && keyString(target)}`;
}

/** The same things, beginning anywhere: so that none is always the last one. */
function rotated<T>(things: readonly T[], { random }: Pick<Runtime, "random">): readonly T[] {
	const at = things.length > derivedAtOnce ? Math.floor(random.next() * things.length) : 0;
	return [...things.slice(at), ...things.slice(0, at)];
}

function refuse(message: string): Refused {
	return new Refused(Code.FailedPrecondition, message);
}
