import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { hasFinalizer, isMarkedForDeletion } from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import {
	type CommitOptions,
	type CommitResult,
	decorateBackend,
	type Mutation,
	Refused,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { CommitAttempt } from "./commit-attempt.ts";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { assertDescriptor } from "./descriptor-record.ts";
import type { HolderQuery } from "./holder-query.ts";
import { isTombstone } from "./removals.ts";
import { RetryableConflict } from "./retryable-conflict.ts";
import { referencesFinalizer } from "./shadow.ts";
import { ResourceShadow } from "./shadow-records.ts";

/**
 * The storage for all other packages: commits through it maintain the integrity of references.
 *
 *     commit ─▶ attempt: read shadows ─▶ check deletions ─▶ establish ─▶ commit with all asserts
 *                  ▲                                                          │
 *                  └── with jitter, if only shadows, guards or targets changed ──┘
 *
 * A conflict on a resource that the caller writes or asserts is returned to the caller, as without this store.
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

async function commit(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	mutations: readonly Mutation[],
	options: CommitOptions = {},
): Promise<CommitResult> {
	if (mutations.every(isUnconstrained)) {
		return context.backend.commit(mutations, options);
	}
	if (await isPlain(context, mutations)) {
		const plain = await commitPlain(context, mutations, options);
		if (plain !== undefined) {
			return plain;
		}
	}
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
		}
		await backoff.wait();
	}
}

/**
 * Whether the commit does not concern references: it only puts unmarked resources without owners, of types
 * without references, and marks none.
 */
async function isPlain(
	{ backend, descriptor }: ConstraintContext,
	mutations: readonly Mutation[],
): Promise<boolean> {
	for (const mutation of mutations) {
		if (mutation.op === "delete") {
			return false;
		}
		if (mutation.op === "assert") {
			continue;
		}
		const { resource, expectedVersion } = mutation;
		if (!isUnrelated(resource) || descriptor.hasReferences(resource)) {
			return false;
		}
		if (expectedVersion === "" || resource.id === undefined) {
			continue;
		}
		const stored = await backend.lookup(resource.id);
		const isSeen = stored?.version === expectedVersion;
		const isOther = stored?.id?.type?.groupVersion !== resource.id.type?.groupVersion;
		if (!isSeen || isOther || !isUnrelated(stored)) {
			return false;
		}
	}
	return true;
}

function isUnrelated(resource: Resource): boolean {
	return (
		resource.ownerReferences.length === 0 &&
		!isMarkedForDeletion(resource) &&
		!hasFinalizer(resource, referencesFinalizer)
	);
}

/** Returns `undefined` if another schema has become active, or may have. */
async function commitPlain(
	context: ConstraintContext,
	mutations: readonly Mutation[],
	options: CommitOptions,
): Promise<CommitResult | undefined> {
	const descriptor = await assertDescriptor(context);
	try {
		const { version, resources } = await context.backend.commit(
			[...mutations, descriptor],
			options,
		);
		return { version, resources: resources.slice(0, mutations.length) };
	} catch (failure) {
		if (isConflict(failure) && failure.mutations.includes(mutations.length)) {
			return undefined;
		}
		throw failure;
	}
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
