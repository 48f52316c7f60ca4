/**
 * Settles references without a target, as an operator has decided: each as it was listed, and only while it has no target.
 *
 *     unset ────▶ the fields are cleared, by compare-and-swap on the resource and its shadow
 *     cascade ──▶ the resource is deleted, like any other: it may be blocked, and takes along what it would take along
 *     keep ─────▶ the shadow records that, and the reference is no longer reported
 *
 * A reference is given up only after its target was looked up once more: one that is back is resolved instead. If its
 * deployment can't be reached, nothing is given up. Every commit asserts the shadow in which the reference has no target,
 * so a target that comes back meanwhile, a write of a user, or another operator makes it fail; then the shadow is read
 * again. Each resource is changed in a commit of its own: an interrupted call leaves settled what is settled.
 */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	SettleRequest_Action as Action,
	type MissingReference,
	SettleResponse_Outcome as Outcome,
	type SettleResponse_Result as Result,
	SettleResponse_ResultSchema as ResultSchema,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { CheckMetaOwnersResponse_Verdict as Verdict } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	Lifecycle,
	type MetaOwner,
	MissingTargetSchema,
	type OutgoingReference,
	type ResourceKey,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Caller, encodeData, isMarkedForDeletion, newUlid } from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import {
	type CommitOptions,
	type CommitResult,
	Exhausted,
	type Mutation,
	Refused,
	type StorageBackend,
} from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { recordsOfFields } from "../commit/records-of-fields.ts";
import { derivationBatchSize } from "../commit/reference-plan.ts";
import { deletion } from "../commit/removals.ts";
import { RetryableConflict } from "../commit/retryable-conflict.ts";
import { OwnerQuery } from "../controller/owner-query.ts";
import { withMissingReport } from "../controller/reported-status.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { assertDescriptor } from "../schema/descriptor-record.ts";
import { ownerKey } from "../schema/owner-references.ts";
import { keyString, nameOfKey } from "../shadow/resource-key.ts";
import { sameReference, sameTarget, shadowName } from "../shadow/shadow.ts";
import { putRecord, readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { compareVersions } from "../shadow/versions.ts";
import { isLostIn, isMissingIn, type TargetPlace } from "./target-place.ts";

/** What is done with references, and for whom. */
export interface Settling {
	readonly place: TargetPlace;
	readonly action: Action;
	readonly dryRun: boolean;
	/** The caller. References of resources that it may not read do not exist for it. */
	readonly caller: Caller | undefined;
	readonly signal: AbortSignal;
}

/** How many resources are settled at the same time. */
const concurrent = 16;

/**
 * Settles references, and returns a result for each.
 *
 * @throws ConnectError InvalidArgument if the request lacks an action or the name of a resource; the reason of the signal.
 */
export async function settleReferences(
	context: ConstraintContext,
	store: StorageBackend,
	references: readonly MissingReference[],
	settling: Settling,
): Promise<readonly Result[]> {
	if (settling.action === Action.UNSPECIFIED) {
		throw new ConnectError("action is required", Code.InvalidArgument);
	}
	const results = new Map<MissingReference, Result>();
	let version = "";
	const committed = (result: CommitResult) => {
		version = compareVersions(result.version, version) > 0 ? result.version : version;
	};
	const byHolder = [...Map.groupBy(references, keyOfHolder).values()];
	for (let at = 0; at < byHolder.length; at += concurrent) {
		await context.runtime.scheduler.turn();
		settling.signal.throwIfAborted();
		const settled = byHolder
			.slice(at, at + concurrent)
			.map((same) =>
				new HolderSettlement(context, store, settling, same, results, committed).run(),
			);
		await Promise.all(settled);
	}
	// A client that lists the references next should not see what is settled. Nothing depends on that.
	await context.index.reachedWithin(version, context.limits.callTimeoutMs).catch(() => {});
	return references.map((each) => results.get(each) ?? resultOf(Outcome.GONE));
}

function keyOfHolder({ holder, holderUid }: MissingReference): string {
	if (holder === undefined || holderUid === "") {
		throw new ConnectError("reference.holder and holder_uid are required", Code.InvalidArgument);
	}
	return `${holderUid} ${keyString(holder)}`;
}

/** The records of references and owners that are as they were listed. */
interface Matched {
	readonly references: Map<OutgoingReference, MissingReference>;
	readonly owners: Map<MetaOwner, MissingReference>;
}

/** The settlement of some references of one resource. */
class HolderSettlement {
	readonly #context: ConstraintContext;
	readonly #store: StorageBackend;
	readonly #settling: Settling;
	readonly #references: readonly MissingReference[];
	readonly #results: Map<MissingReference, Result>;
	readonly #committed: (result: CommitResult) => void;

	constructor(
		context: ConstraintContext,
		store: StorageBackend,
		settling: Settling,
		references: readonly MissingReference[],
		results: Map<MissingReference, Result>,
		committed: (result: CommitResult) => void,
	) {
		this.#context = context;
		this.#store = store;
		this.#settling = settling;
		this.#references = references;
		this.#results = results;
		this.#committed = committed;
	}

	/** Tries until it succeeds or is refused. */
	async run(): Promise<void> {
		const { runtime, limits } = this.#context;
		const [first] = this.#references;
		if (first?.holder === undefined) {
			return;
		}
		const backoff = new Backoff({
			...{ clock: runtime.clock, random: runtime.random },
			...{ baseMs: limits.maxRetryDelayMs / 50, maxMs: limits.maxRetryDelayMs },
		});
		for (let left = limits.maxAttempts; left > 0; left--) {
			try {
				await this.#attempt(first.holder, first.holderUid);
				return;
			} catch (failure) {
				if (failure instanceof Refused || failure instanceof Exhausted) {
					this.#refuse(this.#references, failure.message);
					return;
				}
				if (!(isConflict(failure) || failure instanceof RetryableConflict)) {
					throw failure;
				}
			}
			await backoff.wait(this.#settling.signal);
		}
		this.#refuse(this.#references, "it changed during every attempt: try again");
	}

	/** Reads the resource before its shadow: while it has this version, its references are those in the shadow. */
	async #attempt(holder: ResourceKey, holderUid: string): Promise<void> {
		const { backend } = this.#context;
		const { action, caller, dryRun } = this.#settling;
		const resource = await backend.lookup(nameOfKey(holder), { consistency: "strong" });
		const isVisible = resource?.id?.uid === holderUid && caller?.mayRead(resource) !== false;
		if (!isVisible) {
			this.#finish(this.#references, Outcome.GONE);
			return;
		}
		if (action !== Action.KEEP && !dryRun) {
			await this.#lookUpTargets(holder);
		}
		const read = await backend.lookup(nameOfKey(holder), { consistency: "strong" });
		const name = shadowName(holder);
		const stored = await readShadow(backend, name, { consistency: "strong" });
		const matched: Matched = { references: new Map(), owners: new Map() };
		if (read?.id?.uid === holderUid && stored?.shadow.uid === holderUid) {
			await this.#match(stored, matched);
		}
		const found = new Set([...matched.references.values(), ...matched.owners.values()]);
		this.#finish(
			this.#references.filter((each) => !found.has(each)),
			Outcome.GONE,
		);
		if (read === undefined || stored === undefined || found.size === 0) {
			return;
		}
		if (action === Action.KEEP) {
			await this.#keep(read, stored, matched);
		} else if (action === Action.CASCADE) {
			await this.#cascade(read, stored);
			this.#finish(found, Outcome.SETTLED);
		} else {
			await this.#unset(read, stored, matched);
		}
	}

	/** Resolves those of the references whose targets are back. All are looked up: one commit has only so many. */
	async #lookUpTargets(holder: ResourceKey): Promise<void> {
		const named = this.#references.flatMap(({ target, isOwner }) =>
			target === undefined || isOwner ? [] : keyString(target),
		);
		const targets = [...new Set(named)];
		for (let at = 0; at < targets.length; at += derivationBatchSize) {
			const some = new Set(targets.slice(at, at + derivationBatchSize));
			await deriveReferences(this.#context, nameOfKey(holder), {
				reestablish: () => false,
				isMissing: (target) => !some.has(keyString(target)),
			});
		}
	}

	/** Finds the records of the references that are as they were listed. */
	async #match(stored: StoredShadow, matched: Matched): Promise<void> {
		for (const reference of this.#references) {
			const record = reference.isOwner ? undefined : this.#find(stored, reference);
			const owner = reference.isOwner ? this.#findOwner(stored, reference) : undefined;
			if (record !== undefined) {
				matched.references.set(record, reference);
			} else if (owner !== undefined && !(await this.#isValid(stored, owner))) {
				matched.owners.set(owner, reference);
			}
		}
	}

	#find({ shadow }: StoredShadow, reference: MissingReference): OutgoingReference | undefined {
		return shadow.outgoing.find(
			(each) =>
				isMissingIn(this.#context, each, this.#settling.place) &&
				each.path === reference.path &&
				(each.missing?.uid ?? "") === reference.targetUid &&
				(each.missing?.wrongType ?? "") === reference.wrongType &&
				sameReference(each, reference),
		);
	}

	#findOwner({ shadow }: StoredShadow, reference: MissingReference): MetaOwner | undefined {
		return shadow.metaOwners.find(
			(each) =>
				isLostIn(this.#context, each, this.#settling.place) &&
				each.ownerUid === reference.targetUid &&
				sameTarget(each.owner, reference.target),
		);
	}

	/**
	 * Whether the deployment of an owner says that it is valid by now. Only what is given up is asked about.
	 *
	 * @throws Refused Unavailable if it can't be asked.
	 */
	async #isValid(stored: StoredShadow, owner: MetaOwner): Promise<boolean> {
		const { action, dryRun } = this.#settling;
		if (action === Action.KEEP || dryRun) {
			return false;
		}
		const { verdict, problem } = await new OwnerQuery(this.#context).ask(stored, owner);
		if (verdict === undefined || verdict === Verdict.UNSPECIFIED) {
			throw new Refused(Code.Unavailable, problem);
		}
		return verdict === Verdict.VALID;
	}

	async #cascade(resource: Resource, stored: StoredShadow): Promise<void> {
		if (isMarkedForDeletion(resource)) {
			return;
		}
		// The caller adds no reference with this: it only decides which blockers a refusal names.
		const { caller, dryRun } = this.#settling;
		const removal = [...deletion(this.#context.runtime, resource), asRead(stored)];
		await this.#commit(this.#store, removal, { caller, dryRun });
	}

	async #unset(
		resource: Resource,
		stored: StoredShadow,
		{ references, owners }: Matched,
	): Promise<void> {
		const { descriptor, runtime } = this.#context;
		const left = new Map(references);
		const recordFor = recordsOfFields(this.#context, resource, stored.shadow, left.keys());
		for (const declared of descriptor.referencesOf(resource)) {
			const record = declared.notClearable === undefined ? undefined : recordFor(declared);
			const reference = record && left.get(record);
			if (record !== undefined && reference !== undefined) {
				left.delete(record);
				const problem = `${declared.path} ${declared.notClearable}, so it can't be cleared`;
				this.#refuse([reference], `${problem}: cascade or keep it`);
			}
		}
		const cleared =
			left.size === 0
				? undefined
				: descriptor.without(resource, (declared) => {
						const record = recordFor(declared);
						return record !== undefined && left.has(record);
					});
		if (left.size > 0 && cleared?.data === undefined) {
			const problem = "the fields of the resource can't be read, so none can be cleared";
			this.#refuse(left.values(), `${problem}: cascade or keep it`);
			left.clear();
		}
		if (left.size + owners.size === 0) {
			return;
		}
		const ownerReferences = resource.ownerReferences.filter((each) => {
			const key = ownerKey(this.#context, each, stored.shadow.metaOwners);
			const isOf = ({ ownerUid, owner }: MetaOwner) =>
				ownerUid === each.uid && sameTarget(owner, key);
			return ![...owners.keys()].some(isOf);
		});
		const next = {
			...{ ...resource, ownerReferences, generation: newUlid(runtime) },
			...(cleared?.data && { data: encodeData(cleared.type.schema, cleared.data) }),
		};
		const put: Mutation = { op: "put", resource: next, expectedVersion: resource.version };
		await this.#commit(this.#store, [put, asRead(stored)], { dryRun: this.#settling.dryRun });
		this.#finish([...left.values(), ...owners.values()], Outcome.SETTLED);
	}

	async #keep(resource: Resource, stored: StoredShadow, matched: Matched): Promise<void> {
		const { backend, runtime } = this.#context;
		const { shadow } = stored;
		if (shadow.lifecycle === Lifecycle.CHECKING) {
			throw new RetryableConflict("a deletion of it is being checked");
		}
		const outgoing = shadow.outgoing.map((each) =>
			matched.references.has(each) ? kept(each) : each,
		);
		const metaOwners = shadow.metaOwners.map((each) =>
			matched.owners.has(each) ? kept(each) : each,
		);
		const isChanged =
			outgoing.some((each, at) => each !== shadow.outgoing[at]) ||
			metaOwners.some((each, at) => each !== shadow.metaOwners[at]);
		if (isChanged) {
			const next = { ...shadow, outgoing, metaOwners };
			const reported = withMissingReport(this.#context, resource, next);
			const { id = recordId(stored.name), version: expectedVersion } = resource;
			await this.#commit(
				backend,
				[
					reported === undefined
						? { op: "assert", id, expectedVersion }
						: { op: "put", resource: reported, expectedVersion },
					putRecord(runtime, stored.name, stored.resource, { case: "shadow", value: next }),
					await assertDescriptor(this.#context),
				],
				{ dryRun: this.#settling.dryRun },
			);
		}
		this.#finish([...matched.references.values(), ...matched.owners.values()], Outcome.SETTLED);
	}

	async #commit(
		storage: StorageBackend,
		mutations: readonly Mutation[],
		options: CommitOptions,
	): Promise<void> {
		const result = await storage.commit(mutations, options);
		if (!options.dryRun) {
			this.#committed(result);
		}
	}

	#finish(references: Iterable<MissingReference>, outcome: Outcome): void {
		for (const reference of references) {
			this.#results.set(reference, resultOf(outcome));
		}
	}

	#refuse(references: Iterable<MissingReference>, problem: string): void {
		for (const reference of references) {
			this.#results.set(reference, resultOf(Outcome.REFUSED, problem));
		}
	}
}

/** The record of a reference or an owner that an operator keeps. */
function kept<T extends OutgoingReference | MetaOwner>(each: T): T {
	return each.missing?.isKept
		? each
		: { ...each, missing: { ...(each.missing ?? create(MissingTargetSchema)), isKept: true } };
}

/** What every commit asserts: the references are as they were read. */
function asRead({ name, version }: StoredShadow): Mutation {
	return { op: "assert", id: recordId(name), expectedVersion: version };
}

function resultOf(outcome: Outcome, problem = ""): Result {
	return create(ResultSchema, { outcome, problem });
}
