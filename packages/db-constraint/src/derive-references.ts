import { Code } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { type Mutation, Refused } from "@plinth/storage";
import type { Asking } from "./asking.ts";
import { Busy } from "./busy.ts";
import { CommitAttempt } from "./commit-attempt.ts";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { type KeyLike, keyString } from "./resource-key.ts";
import { lookup } from "./shadow-records.ts";

/**
 * Derives the references of a stored resource by the schema in force, and establishes what its shadow
 * lacks. Nothing happens where the resource is gone.
 *
 * @param anew - of which targets references are established anew, even where the shadow has them.
 * @throws Refused Unavailable where a deployment can't be reached, or things kept changing.
 */
export async function deriveReferences(
	context: ConstraintContext,
	asking: Asking,
	name: ResourceName,
	anew: (target: KeyLike) => boolean = () => false,
): Promise<void> {
	const { backend, runtime, limits } = context;
	let pauseMs = limits.pauseMs / 50;
	const found = new Set<string>();
	const isLeft = (target: KeyLike) => anew(target) && !found.has(keyString(target));
	for (let left = limits.attempts; ; left--) {
		const resource = await lookup(backend, name);
		if (resource?.id === undefined) {
			return;
		}
		const attempt = new CommitAttempt(context, asking, [unchanged(resource, resource.id)], {});
		try {
			const derived = await attempt.derive(resource, isLeft);
			if (!derived.isMore || derived.found.length === 0) {
				return;
			}
			for (const target of derived.found) {
				found.add(target);
			}
			left = limits.attempts + 1;
			continue;
		} catch (failure) {
			if (!(failure instanceof Busy || isConflict(failure))) {
				throw failure;
			}
			if (left <= 1) {
				attempt.giveUp();
				throw new Refused(Code.Unavailable, "the resource or its targets kept changing");
			}
		}
		await sleep(runtime.clock, pauseMs * (0.5 + runtime.random.next()));
		pauseMs = Math.min(pauseMs * 2, limits.pauseMs);
	}
}

function unchanged(resource: Resource, id: ID): Mutation {
	return { op: "assert", id, expectedVersion: resource.version };
}
