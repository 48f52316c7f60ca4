import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Consistency, Mutation, ReadOptions } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { isEmpty } from "./shadow.ts";
import { putRecord, readShadow, type StoredShadow, shadowOf } from "./shadow-records.ts";

/**
 * Replaces exactly the given version of a shadow. An empty shadow is removed.
 *
 * @param more - mutations of the same commit.
 * @returns the stored shadow; "removed" if it was empty; "conflict" if another version was stored.
 */
export async function replaceShadow(
	{ backend, runtime }: Pick<ConstraintContext, "backend" | "runtime">,
	stored: StoredShadow,
	next: Shadow,
	more: readonly Mutation[] = [],
): Promise<StoredShadow | "removed" | "conflict"> {
	try {
		const { resources } = await backend.commit([
			isEmpty(next) && stored.resource.id !== undefined
				? { op: "delete", id: stored.resource.id, expectedVersion: stored.version }
				: putRecord(runtime, stored.name, stored.resource, { case: "shadow", value: next }),
			...more,
		]);
		return (resources[0] && shadowOf(resources[0])) ?? "removed";
	} catch (failure) {
		if (isConflict(failure)) {
			return "conflict";
		}
		throw failure;
	}
}

/**
 * Changes a shadow, and reads it again on conflict. `change` receives the stored shadow, and returns
 * `undefined` for no change.
 *
 * @param more - further mutations of the same commit; `undefined` if it is not to be made any more. Read with the
 *   consistency that it receives.
 */
export async function updateShadow(
	context: Pick<ConstraintContext, "backend" | "runtime">,
	name: string,
	change: (stored: StoredShadow) => Shadow | undefined,
	more: (options: ReadOptions) => Promise<readonly Mutation[] | undefined> = async () => [],
): Promise<void> {
	// A conflict shows that this server lags behind: read strongly from then on.
	for (let consistency: Consistency = "eventual"; ; consistency = "strong") {
		const stored = await readShadow(context.backend, name, { consistency });
		const next = stored && change(stored);
		if (stored === undefined || next === undefined) {
			return;
		}
		const mutations = await more({ consistency });
		if (mutations === undefined) {
			return;
		}
		if ((await replaceShadow(context, stored, next, mutations)) !== "conflict") {
			return;
		}
	}
}
