import { Code } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import { hasFinalizer, isMarkedForDeletion } from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import {
	type CommitOptions,
	type CommitResult,
	decorateBackend,
	type Mutation,
	type Rebase,
	Refused,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { HolderQuery } from "../protocol/holder-query.ts";
import { assertDescriptor, knownDescriptor } from "../schema/descriptor-record.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { CommitAttempt } from "./commit-attempt.ts";
import { isConflict } from "./conflict.ts";
import { isTombstone } from "./removals.ts";
import { RetryableConflict } from "./retryable-conflict.ts";

/**
 * The storage for all other packages: commits through it maintain the integrity of references.
 *
 *     commit ─▶ attempt: read shadows ─▶ check deletions ─▶ establish ─▶ commit with all asserts
 *                  ▲                                                          │
 *                  └── with jitter, if only shadows, guards or targets changed ──┘
 *
 * A conflict on a resource that the caller writes or asserts is returned to the caller, as without this store. Only
 * commits that do not concern references are decided again by their `rebase`: all others depend on more than the
 * resource.
 *
 * Commits fail with Refused: FailedPrecondition if a reference or a deletion is not possible, Unavailable
 * if a deployment can't be reached or the shadows, guards or targets changed during every attempt.
 */
export function createConstraintStore(
	context: ConstraintContext,
	holderQuery: HolderQuery,
): StorageBackend {
	const { backend } = context;
	return decorateBackend(backend, {
		commit: (mutations, options) => commit(context, holderQuery, mutations, options),
	});
}

function commit(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	mutations: readonly Mutation[],
	options: CommitOptions = {},
): Promise<CommitResult> {
	if (mutations.every(isUnconstrained)) {
		return context.backend.commit(mutations, withoutRebase(options));
	}
	const plain = isPlain(context, mutations, options.rebase !== undefined);
	if (plain === false) {
		return commitConstrained(context, holderQuery, mutations, withoutRebase(options));
	}
	const descriptor = plain === true ? knownDescriptor(context) : undefined;
	return descriptor === undefined
		? commitIfPlain(context, holderQuery, mutations, options, plain)
		: commitPlain(context, holderQuery, mutations, options, descriptor);
}

function withoutRebase(options: CommitOptions): CommitOptions {
	return options.rebase === undefined ? options : { ...options, rebase: undefined };
}

/** Attempts the commit until it succeeds, or fails for a reason that the caller has to know. */
async function commitConstrained(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	mutations: readonly Mutation[],
	options: CommitOptions,
): Promise<CommitResult> {
	const { runtime, limits } = context;
	const backoff = new Backoff({
		clock: runtime.clock,
		random: runtime.random,
		baseMs: limits.maxRetryDelayMs / 50,
		maxMs: limits.maxRetryDelayMs,
	});
	for (let left = limits.maxAttempts; ; left--) {
		const attempt = new CommitAttempt(context, holderQuery, mutations, options);
		try {
			return await attempt.run();
		} catch (failure) {
			const again = failure instanceof RetryableConflict || attempt.isInternalConflict(failure);
			if (!(failure instanceof StorageUnavailable)) {
				await attempt.revertCheck();
			}
			if (!again || left <= 1) {
				if (!(failure instanceof StorageUnavailable)) {
					attempt.abandon();
				}
				throw again ? contended(failure) : attempt.inTermsOfCaller(failure);
			}
			// After the first conflict, what has won can be read at once: of many first references to a target, one adds
			// the source, and the others find it there.
			if (left < limits.maxAttempts || failure instanceof RetryableConflict) {
				await backoff.wait();
			}
		}
	}
}

/**
 * Whether the commit does not concern references: it only puts unmarked resources without owners, of types
 * without references, and marks none. Known at once unless it replaces resources that have to be looked up.
 *
 * @param isRebased - whether the commit is decided again if the stored resource is another one.
 */
function isPlain(
	context: ConstraintContext,
	mutations: readonly Mutation[],
	isRebased: boolean,
): boolean | Promise<boolean> {
	const replacing: ReplacingPut[] = [];
	for (const mutation of mutations) {
		if (mutation.op === "assert") {
			continue;
		}
		if (mutation.op === "delete" || !isPlainPut(context, mutation, mutation.replaces)) {
			return false;
		}
		const isKnown = mutation.expectedVersion === (mutation.replaces?.version ?? "");
		if (!isKnown && mutation.resource.id !== undefined) {
			replacing.push({ put: mutation, id: mutation.resource.id });
		}
	}
	return replacing.length === 0 || replacePlain(context, replacing, isRebased);
}

type Put = Extract<Mutation, { readonly op: "put" }>;

interface ReplacingPut {
	readonly put: Put;
	readonly id: ID;
}

/** Whether what the mutations replace does not concern references either. */
async function replacePlain(
	context: ConstraintContext,
	replacing: readonly ReplacingPut[],
	isRebased: boolean,
): Promise<boolean> {
	for (const { put, id } of replacing) {
		const stored = await context.backend.lookup(id);
		const isSeen = stored?.version === put.expectedVersion;
		if (!(isSeen || isRebased) || stored === undefined || !isPlainPut(context, put, stored)) {
			return false;
		}
	}
	return true;
}

function isPlainPut(
	{ descriptor }: ConstraintContext,
	{ resource }: Put,
	stored: Resource | undefined,
): boolean {
	return (
		isUnrelated(resource) &&
		!descriptor.hasReferences(resource) &&
		(stored === undefined ||
			(stored.id?.type?.groupVersion === resource.id?.type?.groupVersion && isUnrelated(stored)))
	);
}

function isUnrelated(resource: Resource): boolean {
	return (
		resource.ownerReferences.length === 0 &&
		!isMarkedForDeletion(resource) &&
		!hasFinalizer(resource, referencesFinalizer)
	);
}

/** Commits once it is known whether the mutations concern references, and which descriptor is active. */
async function commitIfPlain(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	mutations: readonly Mutation[],
	options: CommitOptions,
	isPlain: true | Promise<boolean>,
): Promise<CommitResult> {
	return (await isPlain)
		? commitPlain(context, holderQuery, mutations, options, await assertDescriptor(context))
		: commitConstrained(context, holderQuery, mutations, withoutRebase(options));
}

/**
 * Commits what does not concern references. Almost every write of a type without references begins here, so it looks
 * nothing up, and does not copy the result of the storage, which ends with that of the descriptor's assert. An async
 * function would allocate as much as all of it.
 */
function commitPlain(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	mutations: readonly Mutation[],
	options: CommitOptions,
	descriptor: Mutation,
): Promise<CommitResult> {
	const { rebase } = options;
	let decided = mutations.length;
	const rebasePlain: Rebase = (stored) => {
		const rebased = rebase?.(stored);
		if (rebased === undefined || !isPlainOver(context, rebased, stored)) {
			return undefined;
		}
		decided = rebased.length;
		return [...rebased, descriptor];
	};
	return context.backend
		.commit(
			[...mutations, descriptor],
			rebase === undefined ? options : { ...options, rebase: rebasePlain },
		)
		.then(undefined, (failure) => {
			if (isConflict(failure) && failure.mutations.includes(decided)) {
				// Another schema has become active, or may have.
				return commitConstrained(context, holderQuery, mutations, withoutRebase(options));
			}
			throw failure;
		});
}

/** Whether mutations put nothing but the resource that replaces the stored one, and don't concern references. */
function isPlainOver(
	context: ConstraintContext,
	mutations: readonly Mutation[],
	stored: Resource | undefined,
): boolean {
	return mutations.every(
		(mutation, at) =>
			mutation.op === "assert" ||
			(mutation.op === "put" && at === 0 && isPlainPut(context, mutation, stored)),
	);
}

/** Whether the mutation has no references: records of this package, tombstones, and asserts. */
function isUnconstrained(mutation: Mutation): boolean {
	if (mutation.op === "assert") {
		return true;
	}
	const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
	const { group, kind } = ResourceShadow.type;
	return isTombstone({ id }) || (id?.type?.kind === kind && id.type.group === group);
}

function contended(failure: unknown): Refused {
	const why =
		failure instanceof RetryableConflict ? failure.message : "references changed at the same time";
	return new Refused(Code.Unavailable, `${why}: try again`);
}
