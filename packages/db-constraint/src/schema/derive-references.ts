import { Code } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ResourceName } from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import { Exhausted, type Mutation, Refused } from "@plinth/storage";
import { CommitPlan } from "../commit/commit-plan.ts";
import { isConflict } from "../commit/conflict.ts";
import { type Derivation, ReferencePlan } from "../commit/reference-plan.ts";
import { abandonedBy, releasesOf } from "../commit/releases.ts";
import { RetryableConflict } from "../commit/retryable-conflict.ts";
import { withMissingReport } from "../controller/reported-status.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { displayKey, type KeyLike, keyOf, keyString } from "../shadow/resource-key.ts";
import { inOrderOf } from "./derivation-order.ts";
import { assertDescriptor } from "./descriptor-record.ts";

/**
 * Derives the references of a stored resource by the active schema, and establishes those that its shadow
 * lacks. A missing target is recorded without a uid, and reported in the resource's status. Does nothing
 * if the resource does not exist. If it can't be decoded, it keeps the references of its shadow.
 *
 * @returns the shadow with which the last commit left the resource, if both exist.
 * @throws Refused Unavailable if a deployment can't be reached, or the resource or its targets changed during
 * every attempt; ResourceExhausted, naming the resource, if its references do not fit into its shadow.
 */
export async function deriveReferences(
	context: ConstraintContext,
	name: ResourceName,
	{ reestablish, successor, isMissing: skips }: Derivation = { reestablish: () => false },
): Promise<Shadow | undefined> {
	const { backend, hints, runtime, limits } = context;
	const backoff = new Backoff({
		clock: runtime.clock,
		random: runtime.random,
		baseMs: limits.maxRetryDelayMs / 50,
		maxMs: limits.maxRetryDelayMs,
	});
	const found = new Set<string>();
	const missing = new Set<string>();
	const isMissing = (target: KeyLike) =>
		missing.has(keyString(target)) || (skips?.(target) ?? false);
	const derivation: Derivation = {
		reestablish: (target, deploymentUid) =>
			reestablish(target, deploymentUid) && !found.has(keyString(target)) && !isMissing(target),
		isMissing,
		successor,
	};
	for (let left = limits.maxAttempts; ; left--) {
		const resource = await backend.lookup(name);
		if (resource?.id === undefined) {
			return undefined;
		}
		const plan = new CommitPlan(backend, runtime);
		const scope = { created: new Map(), deleted: new Set<string>(), dryRun: false };
		const references = new ReferencePlan(context, plan, scope, derivation);
		try {
			const shadow = await derive(context, plan, references, resource, resource.id);
			if (!references.continues) {
				return shadow;
			}
			for (const target of references.handled) {
				found.add(target);
			}
			for (const target of references.missing) {
				missing.add(target);
			}
			left = limits.maxAttempts + 1;
			continue;
		} catch (failure) {
			if (failure instanceof Exhausted) {
				const message = `the references of ${displayKey(keyOf(name, ""))} do not fit into its shadow: ${failure.message}`;
				throw new Refused(Code.ResourceExhausted, message);
			}
			if (!(failure instanceof RetryableConflict || isConflict(failure))) {
				throw failure;
			}
			if (left <= 1) {
				hints.released(abandonedBy(references));
				throw new Refused(
					Code.Unavailable,
					"the resource or its targets changed during every attempt: retry the request",
				);
			}
		}
		await backoff.wait();
	}
}

/** One attempt: the commit asserts the resource as it was read, and everything it depends on. Returns its shadow. */
async function derive(
	context: ConstraintContext,
	plan: CommitPlan,
	references: ReferencePlan,
	resource: Resource,
	id: ID,
): Promise<Shadow | undefined> {
	const { backend, descriptor, environment, hints, logger } = context;
	const err = descriptor.decodeError(resource);
	if (err !== undefined) {
		const key = displayKey(keyOf(id, environment.self.region));
		logger.error({ resource: key, err }, "kept the references of a resource that can't be decoded");
	}
	await references.add(resource);
	await references.establish();
	plan.assert("descriptor", await assertDescriptor(context));
	const edit = await plan.shadow(keyOf(id, environment.self.region));
	edit.next = edit.next && inOrderOf(edit.stored?.shadow, edit.next);
	const reported = references.continues
		? undefined
		: withMissingReport(context, resource, edit.next);
	const own: Mutation =
		reported === undefined
			? { op: "assert", id, expectedVersion: resource.version }
			: { op: "put", resource: reported, expectedVersion: resource.version };
	await backend.commit([own, ...plan.mutations()]);
	hints.released(releasesOf(context, references.released));
	return edit.next;
}
