import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	contentChanged,
	defineController,
	type ReconcileContext,
	type Requeue,
	requeueAfter,
} from "@plinth/controller";
import { Condition_State, type ID, type Resource } from "@plinth/proto";
import { isMarkedForDeletion, Tombstone } from "@plinth/resource";
import { each } from "./each.ts";

/** What may be changed about the reaper. */
export interface ReaperOptions {
	/** How long after the first pass the second one comes, in milliseconds; 30 s by default. */
	readonly secondPassAfterMs?: number;
}

/** The name of the reaper, and its entry in the statuses of tombstones. */
export const reaperName = "reaper";

/** The condition of a tombstone whose owned resources have been deleted once. */
export const firstPassDone = "FirstPassDone";

/** Deletions of one pass that are under way at once. */
const deletionsAtOnce = 16;

/**
 * Deletes what a deleted resource owned. Each tombstone is worked on in two passes:
 *
 * ```
 *   new ──pass──▶ waiting ──30 s, pass──▶ nothing left that is not marked ──▶ tombstone deleted
 *                    ▲                                  │ else
 *                    └──────────────────────────────────┘
 * ```
 *
 * That the first pass has been is written to the tombstone where it had something to delete, so that
 * the second one comes when it is due also after a restart; where it had not, a restart begins
 * anew. What is marked goes by itself, and leaves a tombstone of its own.
 */
export function createReaper({ secondPassAfterMs = 30_000 }: ReaperOptions = {}): Controller {
	/** When tombstones had their last pass, by uid, on the monotonic clock. */
	const passedAtMs = new Map<string, number>();

	return defineController({
		name: reaperName,
		manages: Tombstone,
		when: contentChanged,
		concurrency: 8,
		initialize() {
			passedAtMs.clear();
		},
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const tombstone = context.cache.get(Tombstone, id);
			if (tombstone?.resource.id === undefined) {
				passedAtMs.delete(id.uid);
				return undefined;
			}
			const { resource, data } = tombstone;
			const dueInMs = untilSecondPass(context, resource);
			if (dueInMs !== undefined && dueInMs > 0) {
				return requeueAfter(dueInMs);
			}
			const { uid } = tombstone.resource.id;
			const { owned, left } = await pass(context, data.owner);
			if (dueInMs !== undefined && left === 0) {
				await context.delete(tombstone.resource.id);
				passedAtMs.delete(uid);
				return undefined;
			}
			passedAtMs.set(uid, context.clock.monotonic());
			if (owned > 0) {
				await context.writeStatusIfChanged(resource, {
					conditions: [{ type: firstPassDone, state: Condition_State.TRUE }],
				});
			}
			return requeueAfter(secondPassAfterMs);
		},
	});

	/** Milliseconds until the second pass is due; `undefined` where there was no first one. */
	function untilSecondPass({ clock }: ReconcileContext, tombstone: Resource): number | undefined {
		const uid = tombstone.id?.uid ?? "";
		let passedAt = passedAtMs.get(uid);
		if (passedAt === undefined) {
			const { conditions, updatedAt } = tombstone.status[reaperName] ?? {};
			if (updatedAt === undefined || !conditions?.some(({ type }) => type === firstPassDone)) {
				return undefined;
			}
			// Counted on the monotonic clock from now on: the other one may have jumped, either way.
			const sinceMs = clock.now() - timestampMs(updatedAt);
			passedAt = clock.monotonic() - Math.min(Math.max(sinceMs, 0), secondPassAfterMs);
			passedAtMs.set(uid, passedAt);
		}
		return passedAt + secondPassAfterMs - clock.monotonic();
	}
}

/** Deletes what is owned and not marked; answers how much was owned, and how much was not marked. */
async function pass(
	{ client }: ReconcileContext,
	owner: ID | undefined,
): Promise<{ readonly owned: number; readonly left: number }> {
	if (owner === undefined) {
		return { owned: 0, left: 0 };
	}
	const { resources } = await client.listByOwner({ owner });
	const left = resources.filter((resource) => !isMarkedForDeletion(resource));
	await each(left, deletionsAtOnce, async ({ id }) => {
		if (id !== undefined) {
			await client.delete({ id });
		}
	});
	return { owned: resources.length, left: left.length };
}
