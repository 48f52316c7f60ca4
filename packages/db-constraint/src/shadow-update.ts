import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Consistency, Mutation } from "@plinth/storage";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { isEmpty } from "./shadow.ts";
import { putRecord, readShadow, type StoredShadow, shadowOf } from "./shadow-records.ts";

/**
 * Replaces one version of a shadow, and no other. A shadow without anything to record is removed.
 *
 * @param more - what is committed with it.
 * @returns the shadow as it is stored now; "gone" where it was removed; "conflict" where another
 * version was stored.
 */
export async function replaceShadow(
	{ backend, runtime }: Pick<ConstraintContext, "backend" | "runtime">,
	stored: StoredShadow,
	next: Shadow,
	more: readonly Mutation[] = [],
): Promise<StoredShadow | "gone" | "conflict"> {
	try {
		const { resources } = await backend.commit([
			isEmpty(next) && stored.resource.id !== undefined
				? { op: "delete", id: stored.resource.id, expectedVersion: stored.version }
				: putRecord(runtime, stored.name, stored.resource, { case: "shadow", value: next }),
			...more,
		]);
		return (resources[0] && shadowOf(resources[0])) ?? "gone";
	} catch (failure) {
		if (isConflict(failure)) {
			return "conflict";
		}
		throw failure;
	}
}

/**
 * Changes a shadow, reading it again on conflict. `change` is given the shadow as it is stored, and
 * answers `undefined` where there is nothing to do.
 */
export async function updateShadow(
	context: Pick<ConstraintContext, "backend" | "runtime">,
	name: string,
	change: (stored: StoredShadow) => Shadow | undefined,
): Promise<void> {
	// After a conflict, what this server has heard of so far is known to be old.
	for (let consistency: Consistency = "eventual"; ; consistency = "strong") {
		const stored = await readShadow(context.backend, name, { consistency });
		const next = stored && change(stored);
		if (stored === undefined || next === undefined) {
			return;
		}
		if ((await replaceShadow(context, stored, next)) !== "conflict") {
			return;
		}
	}
}
