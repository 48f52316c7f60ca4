import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	contentChanged,
	defineController,
	type ReconcileContext,
	type Requeue,
	requeueAfter,
	statusChanged,
} from "@plinth/controller";
import { Condition_State, type ID, type Resource } from "@plinth/proto";
import {
	type Decoded,
	displayName,
	gvkKey,
	isMarkedForDeletion,
	type ResourceType,
	Tombstone,
} from "@plinth/resource";
import { Backoff } from "@plinth/runtime";
import { type CountedTypes, describeTypes } from "./counted-types.ts";
import { forEachConcurrently } from "./for-each-concurrently.ts";
import { resourcesLeftCondition, waitsForTypes } from "./unregistered-types.ts";

/** Options of the reaper. */
export interface ReaperOptions {
	/** The delay between the first and the second pass, in milliseconds. Default: 30 s. */
	readonly secondPassAfterMs?: number;
	/** The types that this server registers. Default: all types count as registered. */
	readonly types?: () => readonly ResourceType[];
}

/** The name of the reaper, and the key of its status on tombstones. */
export const reaperName = "reaper";

/** The type of the condition: the first pass over the owned resources is complete. */
export const firstPassDoneCondition = "FirstPassDone";

/** The type of the condition: all owned resources are deleted. False if their types are not registered here. */
export const ownedDeletedCondition = "OwnedDeleted";

/** The longest pause between two passes of a tombstone that waits for a server with more types. */
const longestPauseMs = 2 * 60_000;

/** The number of concurrent deletions of one pass. */
const concurrentDeletions = 16;

/**
 * The reaper: deletes the resources that a deleted resource owned. Each tombstone gets two passes:
 *
 * ```
 *   new ──pass──▶ waiting ──30 s, pass──▶ no unmarked resources left ──▶ tombstone deleted
 *                    ▲                                │ else
 *                    └────────────────────────────────┘
 * ```
 *
 * If the first pass has deleted something, it is recorded on the tombstone, so that the second one is on time
 * even after a restart; otherwise a restart starts over. Marked resources are deleted by their finalizers'
 * controllers, and leave their own tombstones.
 *
 * A resource whose type this server does not register can't be deleted here. Its owner's tombstone stays and
 * reports it in its status. Further passes follow at growing intervals, and write only changes. Passes of other
 * tombstones continue.
 */
export function createReaper(options: ReaperOptions = {}): Controller {
	const { secondPassAfterMs = 30_000 } = options;
	/** The time of the last pass of each tombstone, by uid, on the monotonic clock. */
	const passedAtMs = new Map<string, number>();
	/** The backoffs of tombstones that wait for types, by uid. */
	const backoffs = new Map<string, Backoff>();
	const forget = (uid: string) => {
		passedAtMs.delete(uid);
		backoffs.delete(uid);
	};

	return defineController({
		name: reaperName,
		manages: Tombstone,
		when: contentChanged,
		concurrency: 8,
		initialize() {
			passedAtMs.clear();
			backoffs.clear();
		},
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const tombstone = context.cache.get(Tombstone, id);
			if (tombstone?.resource.id === undefined) {
				forget(id.uid);
				return undefined;
			}
			const { resource, data } = tombstone;
			const dueInMs = untilSecondPass(context, resource);
			if (dueInMs !== undefined && dueInMs > 0) {
				return requeueAfter(dueInMs);
			}
			const { uid } = tombstone.resource.id;
			const { owned, left, unregistered, failure } = await pass(context, data.owner, options);
			if (dueInMs !== undefined && left === 0) {
				await context.delete(tombstone.resource.id);
				forget(uid);
				return undefined;
			}
			if (failure === undefined) {
				passedAtMs.set(uid, context.clock.monotonic());
			}
			let waitMs = secondPassAfterMs;
			if (unregistered.size > 0) {
				waitMs = backoffOf(context, uid).nextDelayMs();
			} else {
				backoffs.delete(uid);
			}
			if (owned > 0) {
				await report(context, tombstone, unregistered, failure === undefined);
			}
			if (failure !== undefined) {
				throw failure;
			}
			return requeueAfter(waitMs);
		},
	});

	/** The delays after passes that have left resources of unregistered types. */
	function backoffOf({ clock }: ReconcileContext, uid: string): Backoff {
		let backoff = backoffs.get(uid);
		if (backoff === undefined) {
			const maxMs = Math.max(longestPauseMs, secondPassAfterMs);
			backoff = new Backoff({ clock, baseMs: secondPassAfterMs, maxMs });
			backoffs.set(uid, backoff);
		}
		return backoff;
	}

	/** Milliseconds until the second pass is due; `undefined` if there was no first one. */
	function untilSecondPass({ clock }: ReconcileContext, tombstone: Resource): number | undefined {
		const uid = tombstone.id?.uid ?? "";
		let passedAt = passedAtMs.get(uid);
		if (passedAt === undefined) {
			const { conditions, updatedAt } = tombstone.status[reaperName] ?? {};
			const isDone = conditions?.some(({ type }) => type === firstPassDoneCondition) ?? false;
			if (updatedAt === undefined || !isDone) {
				return undefined;
			}
			// Count on the monotonic clock from now on: the wall clock may have jumped in either direction.
			const sinceMs = clock.now() - timestampMs(updatedAt);
			passedAt = clock.monotonic() - Math.min(Math.max(sinceMs, 0), secondPassAfterMs);
			passedAtMs.set(uid, passedAt);
		}
		return passedAt + secondPassAfterMs - clock.monotonic();
	}
}

/** Records on a tombstone that the first pass is complete, and which resources this server can't delete. */
async function report(
	context: ReconcileContext,
	{ resource, data }: Decoded<typeof Tombstone.schema>,
	unregistered: CountedTypes,
	isPassDone: boolean,
): Promise<void> {
	const isWaiting = unregistered.size > 0;
	const conditions = [
		...(isPassDone ? [{ type: firstPassDoneCondition, state: Condition_State.TRUE }] : []),
		...(isWaiting
			? [resourcesLeftCondition(ownedDeletedCondition, unregistered, unregistered)]
			: []),
	];
	if (conditions.length === 0) {
		return;
	}
	const { changed } = await context.writeStatusIfChanged(resource, { conditions });
	if (changed && isWaiting) {
		const { id } = resource;
		context.logger.warn(
			{
				...(id && { tombstone: displayName(id) }),
				...(data.owner && { owner: displayName(data.owner) }),
				types: describeTypes(unregistered),
			},
			"a deleted resource still owns resources of types that no module of this server registers",
		);
	}
}

/**
 * A controller for each server of a cluster: deletes the resources that the reaper has reported as unregistered,
 * if its own server registers their types. The reaper's next pass then completes the deletion.
 */
export function createLocalReaper(options: Pick<ReaperOptions, "types">): Controller {
	return defineController({
		name: `${reaperName}-local`,
		manages: Tombstone,
		placement: "each-server",
		when: statusChanged,
		concurrency: 8,
		async reconcile(context, { id }): Promise<void> {
			const tombstone = context.cache.get(Tombstone, id);
			if (tombstone !== undefined && waitsForTypes(tombstone.resource, reaperName)) {
				const { failure } = await pass(context, tombstone.data.owner, options);
				if (failure !== undefined) {
					throw failure;
				}
			}
		},
	});
}

/** The result of a pass. */
interface Pass {
	/** The number of owned resources. */
	readonly owned: number;
	/** The number of them that were not marked. */
	readonly left: number;
	/** The unmarked ones that this server can't delete. */
	readonly unregistered: CountedTypes;
	/** The first failure of a deletion. */
	readonly failure?: unknown;
}

/** Deletes the unmarked owned resources whose types this server registers. */
async function pass(
	{ client }: ReconcileContext,
	owner: ID | undefined,
	{ types }: Pick<ReaperOptions, "types">,
): Promise<Pass> {
	const unregistered = new Map<string, number>();
	if (owner === undefined) {
		return { owned: 0, left: 0, unregistered };
	}
	const { resources } = await client.listByOwner({ owner });
	const left = resources.filter((resource) => !isMarkedForDeletion(resource));
	const registered = types && new Set(types().map(({ key }) => key));
	const deletable: ID[] = [];
	for (const { id } of left) {
		const key = id?.type && gvkKey(id.type);
		if (id === undefined || key === undefined) {
			continue;
		}
		if (registered === undefined || registered.has(key)) {
			deletable.push(id);
		} else {
			unregistered.set(key, (unregistered.get(key) ?? 0) + 1);
		}
	}
	const found = { owned: resources.length, left: left.length, unregistered };
	try {
		await forEachConcurrently(deletable, concurrentDeletions, async (id) => {
			await client.delete({ id });
		});
		return found;
	} catch (failure) {
		return { ...found, failure };
	}
}
