import type { Resource } from "@plinth/proto";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { addFinalizer, hasFinalizer, isMarkedForDeletion } from "@plinth/resource";
import {
	CasFailure,
	type CommitOptions,
	type CommitResult,
	defaultStorageLimits,
	type Mutation,
	WrongUid,
} from "@plinth/storage";
import {
	isResolved,
	ownersKnown,
	referencesResolved,
	statusKey,
	targetsKept,
	withEndedReports,
} from "../controller/reported-status.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { checkDeletion, revertCheck } from "../protocol/deletion-check.ts";
import type { HolderQuery } from "../protocol/holder-query.ts";
import { assertDescriptor } from "../schema/descriptor-record.ts";
import { displayKey, keyOf, keyString } from "../shadow/resource-key.ts";
import { isHeld, newShadow, referencesFinalizer, shadowName } from "../shadow/shadow.ts";
import { ResourceShadow, type StoredShadow } from "../shadow/shadow-records.ts";
import { assertUid } from "../succession/deployment-record.ts";
import { assertMayDelete } from "../succession/succession.ts";
import { CommitPlan, type ShadowEdit } from "./commit-plan.ts";
import { isConflict } from "./conflict.ts";
import { ReferencePlan } from "./reference-plan.ts";
import { abandonedBy, releasesOf } from "./releases.ts";
import {
	isTombstoneOf,
	markedWithReferences,
	withReferencesAlone,
	withStoredFinalizer,
} from "./removals.ts";
import { RetryableConflict } from "./retryable-conflict.ts";

/** The asserts that a commit gets once its references are established: of the descriptor, and of the own uid. */
const assertsOfEstablishing = 2;

/** One attempt at a commit: reads everything it depends on, and asserts that in the commit. */
export class CommitAttempt {
	readonly #context: ConstraintContext;
	readonly #holderQuery: HolderQuery;
	readonly #mutations: readonly Mutation[];
	readonly #options: CommitOptions;
	readonly #plan: CommitPlan;
	readonly #references: ReferencePlan;
	/** The mutation committed in place of each of the caller's; `undefined` if it is omitted. */
	readonly #own: (Mutation | undefined)[];
	/** The resources that this commit creates, by key. */
	readonly #created = new Map<string, Resource>();
	/** The resources that this commit deletes or marks, by key. */
	readonly #deleted = new Set<string>();
	readonly #checks: { readonly checking: StoredShadow; readonly before: Shadow }[] = [];
	/** For each committed mutation of the caller, its position among the caller's mutations. */
	#positions: readonly number[] = [];

	constructor(
		context: ConstraintContext,
		holderQuery: HolderQuery,
		mutations: readonly Mutation[],
		options: CommitOptions,
	) {
		this.#context = context;
		this.#holderQuery = holderQuery;
		this.#mutations = mutations;
		this.#options = options;
		this.#own = [...mutations];
		this.#plan = new CommitPlan(context.backend, context.runtime);
		this.#references = new ReferencePlan(context, this.#plan, {
			created: this.#created,
			deleted: this.#deleted,
			dryRun: options.dryRun ?? false,
			caller: options.caller,
		});
	}

	/** @throws RetryableConflict, or the errors of the storage: see `isInternalConflict`. */
	async run(): Promise<CommitResult> {
		for (const mutation of this.#mutations) {
			if (mutation.op === "put" && mutation.expectedVersion === "") {
				this.#created.set(this.#keyString(mutation.resource.id), mutation.resource);
			}
		}
		await this.#absorbShadowAsserts();
		for (const [at, mutation] of this.#mutations.entries()) {
			if (mutation.op === "delete") {
				await this.#planDelete(at, mutation);
			}
		}
		const [only] = this.#mutations;
		if (only?.op === "delete" && this.#mutations.length === 1 && this.#deleted.size === 0) {
			// The resource is absent or another incarnation: the storage handles that, and nothing changes.
			return this.#context.backend.commit(this.#mutations, this.#options);
		}
		// Plan marks first: like deleted resources, marked ones are no targets for the rest of the commit.
		for (const marks of [true, false]) {
			for (const [at, mutation] of this.#mutations.entries()) {
				const isLeft = mutation.op === "put" && this.#own[at] === mutation;
				if (isLeft && (await this.#marks(mutation)) === marks) {
					await this.#planPut(at, mutation);
				}
			}
		}
		await this.#references.establish(() => this.#assertFits());
		this.#plan.assert("descriptor", await assertDescriptor(this.#context));
		return this.#commit();
	}

	/** Reverts the shadows that this attempt has put to CHECKING. */
	async revertCheck(): Promise<void> {
		await Promise.all(
			this.#checks.map(({ checking, before }) => revertCheck(this.#context, checking, before)),
		);
	}

	/** Hints to other deployments that the established references will not be committed. */
	abandon(): void {
		this.#context.hints.released(abandonedBy(this.#references));
	}

	/** Whether no mutation of the caller is part of the conflict, so that a retry may succeed. */
	isInternalConflict(failure: unknown): boolean {
		return isConflict(failure) && this.#callerPositions(failure).length === 0;
	}

	/** The failure with the positions of the caller's mutations. */
	inTermsOfCaller(failure: unknown): unknown {
		if (!isConflict(failure)) {
			return failure;
		}
		const positions = this.#callerPositions(failure);
		return failure instanceof CasFailure
			? new CasFailure(positions, failure.names)
			: new WrongUid(positions, failure.names);
	}

	#callerPositions(failure: CasFailure | WrongUid): readonly number[] {
		return failure.mutations.flatMap((index) => this.#positions[index] ?? []);
	}

	/**
	 * Lets the storage refuse a commit with too many mutations before other deployments establish its references: that
	 * takes them a commit for every few targets, and the same again when a client repeats the write. Most commits can't
	 * have that many, and nothing is asked.
	 *
	 * @throws Exhausted, as the storage does.
	 */
	async #assertFits(): Promise<void> {
		const most = this.#own.length + this.#plan.mostMutations + assertsOfEstablishing;
		if (most <= defaultStorageLimits.mutations) {
			return;
		}
		const later = [await assertDescriptor(this.#context), ...(await assertUid(this.#context))];
		const planned = [...this.#planned(), ...later];
		if (planned.length > defaultStorageLimits.mutations) {
			await this.#context.backend.commit(planned, { ...this.#options, dryRun: true });
		}
	}

	/** The mutations of the commit, those of the caller first. */
	#planned(): readonly Mutation[] {
		const own = this.#own.flatMap((mutation, at) => (mutation ? [{ mutation, at }] : []));
		this.#positions = own.map(({ at }) => at);
		return [...own.map(({ mutation }) => mutation), ...this.#plan.mutations()];
	}

	async #commit(): Promise<CommitResult> {
		const mutations = this.#planned();
		const { version, resources } = await this.#context.backend.commit(mutations, this.#options);
		if (!this.#options.dryRun) {
			this.#context.hints.released(releasesOf(this.#context, this.#references.released));
		}
		const stored = this.#mutations.map((_, at) => resources[this.#positions.indexOf(at)]);
		return { version, resources: stored };
	}

	/**
	 * Callers may assert the shadow of a resource that they write. The commit changes that shadow itself, so
	 * the assert is replaced by a check of the version that the attempt has read.
	 */
	async #absorbShadowAsserts(): Promise<void> {
		for (const [at, mutation] of this.#mutations.entries()) {
			if (
				mutation.op !== "assert" ||
				mutation.expectedVersion === undefined ||
				mutation.id.type?.kind !== ResourceShadow.type.kind
			) {
				continue;
			}
			const { id, expectedVersion } = mutation;
			const written = this.#mutations
				.filter((other) => other.op !== "assert")
				.map((other) => this.#key(other.op === "put" ? other.resource.id : other.id))
				.find((key) => shadowName(key) === id.name);
			if (written === undefined) {
				continue;
			}
			const edit = await this.#plan.shadow(written);
			if ((edit.stored?.version ?? "") !== expectedVersion) {
				this.#positions = this.#mutations.map((_, position) => position);
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
		await assertMayDelete(this.#context, stored.id);
		if (hasFinalizer(stored, referencesFinalizer)) {
			this.#markInstead(at, stored, withReferencesAlone(this.#context.runtime, stored));
			return;
		}
		const left = await this.#checkDeletion(edit);
		this.#references.releaseAll(edit.next);
		if (left.next !== undefined && isHeld(left.next)) {
			this.#markInstead(at, stored, markedWithReferences(this.#context.runtime, stored));
			left.next = { ...left.next, lifecycle: Lifecycle.DELETING };
		} else {
			left.next = undefined;
		}
	}

	/** Stores the marked resource instead of deleting it. The commit that deletes it writes the tombstone. */
	#markInstead(at: number, stored: Resource, marked: Resource): void {
		this.#own[at] = { op: "put", resource: marked, expectedVersion: stored.version };
		for (const [other, mutation] of this.#mutations.entries()) {
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
		// A resource to be created does not exist, or the commit fails.
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
			await this.#references.add(resource, stored);
			await this.#endReports(at, { ...mutation, resource });
		}
	}

	/** Ends the reports in the status whose reason the write removes. */
	async #endReports(at: number, mutation: Mutation & { op: "put" }): Promise<void> {
		const { environment, runtime } = this.#context;
		const { resource } = mutation;
		if (resource.status[statusKey] === undefined) {
			return;
		}
		const { next: shadow } = await this.#plan.shadow(this.#key(resource.id));
		const outgoing = shadow?.outgoing ?? [];
		const holds = {
			[referencesResolved]: outgoing.every(isResolved),
			[ownersKnown]: resource.ownerReferences.length === 0,
			[targetsKept]: outgoing.every(
				({ deploymentUid }) =>
					deploymentUid === "" || environment.byUid(deploymentUid) !== undefined,
			),
		};
		const next = withEndedReports(resource, holds, runtime.clock);
		if (next !== resource) {
			this.#own[at] = { ...mutation, resource: next };
		}
	}

	/** Whether the put sets the mark of the resource. */
	async #marks({ resource, expectedVersion }: Mutation & { op: "put" }): Promise<boolean> {
		if (!isMarkedForDeletion(resource) || resource.id === undefined) {
			return false;
		}
		const stored = expectedVersion && (await this.#stored(resource.id, expectedVersion));
		return !(stored && isMarkedForDeletion(stored));
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
		await assertMayDelete(this.#context, resource.id);
		const left = await this.#checkDeletion(edit);
		const shadow = left.next ?? newShadow(key, resource.id?.uid ?? "");
		if (isHeld(shadow)) {
			const held = { ...resource, metadata: { ...resource.metadata } };
			addFinalizer(held, referencesFinalizer);
			this.#own[at] = { ...mutation, resource: held };
		}
		left.next = {
			...shadow,
			lifecycle: isPlanted("mark without making the shadow DELETING")
				? Lifecycle.ACTIVE
				: Lifecycle.DELETING,
		};
	}

	/** Checks whether the resource may be deleted, and returns its shadow without released holders. */
	async #checkDeletion(edit: ShadowEdit): Promise<ShadowEdit> {
		const { stored, next } = edit;
		if (next?.lifecycle === Lifecycle.CHECKING) {
			throw new RetryableConflict("another deletion of it is being checked");
		}
		if (stored === undefined || next === undefined || !isHeld(next)) {
			return edit;
		}
		if (next.lifecycle === Lifecycle.DELETING) {
			return edit;
		}
		const { checking, left } = await checkDeletion(
			this.#context,
			this.#holderQuery,
			stored,
			this.#options,
		);
		if (!this.#options.dryRun) {
			this.#checks.push({ checking, before: stored.shadow });
		}
		const checked = this.#plan.preset(checking);
		checked.next = left;
		return checked;
	}

	/** The stored resource; read strongly if its version is not the one that the caller expects. */
	async #stored(id: NonNullable<Resource["id"]>, expected: string): Promise<Resource | undefined> {
		const { backend } = this.#context;
		const stored = await backend.lookup(id);
		return (stored?.version ?? "") === expected
			? stored
			: backend.lookup(id, { consistency: "strong" });
	}

	#key(id: Resource["id"]) {
		return keyOf(id ?? { name: "" }, this.#context.environment.self.region);
	}

	#keyString(id: Resource["id"]): string {
		return keyString(this.#key(id));
	}
}
