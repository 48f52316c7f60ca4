import {
	type Controller,
	contentChanged,
	defineController,
	type ReconcileContext,
	type Requeue,
	requeueAfter,
	statusChanged,
} from "@plinth/controller";
import type { ID, Resource } from "@plinth/proto";
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
import { strongly } from "./strong-reads.ts";
import { resourcesLeftCondition, waitsForTypes } from "./unregistered-types.ts";

/** Options of the reaper. */
export interface ReaperOptions {
	/** The types that this server registers. Default: all types count as registered. */
	readonly types?: () => readonly ResourceType[];
}

/** The name of the reaper, and the key of its status on tombstones. */
export const reaperName = "reaper";

/** The type of the condition: all owned resources are deleted. False if their types are not registered here. */
export const ownedDeletedCondition = "OwnedDeleted";

/** The pauses between two passes of a tombstone that waits for a server with more types. */
const shortestPauseMs = 1_000;
const longestPauseMs = 2 * 60_000;

/** The number of owned resources per page. */
const pageSize = 500;

/** The number of tombstones that are handled at once, and of concurrent deletions for each. */
const concurrentTombstones = 16;
const concurrentDeletions = 16;

/**
 * The reaper: deletes the resources that a deleted resource owned. A tombstone needs one complete pass:
 *
 * ```
 *   tombstone ──▶ list the owned resources, strongly ──▶ delete the unmarked ones
 *                    ▲                                        │
 *                    ├── a deletion failed: with backoff ─────┤
 *                    ├── types not registered here: after a ──┤
 *                    │   pause, reported in the status        │
 *                    │                                        └ none left: delete the tombstone
 * ```
 *
 * No second pass is needed, because nothing can be added to what a deleted resource owns:
 *
 * - A commit that creates an owned resource asserts that its owner exists, with its uid (plan-write.ts of the
 *   resource service). A commit that is late, or comes from a server with an old state, fails.
 * - The owner of a resource never changes, and a uid is never used again.
 * - The commit that deletes the owner writes the tombstone. So a strong read after the tombstone was seen contains
 *   all resources that it has ever owned and that still exist, on any server of a cluster. Owners in other
 *   deployments are meta owners, which have no tombstones here.
 * - The list is read in pages of the current state. An unmarked resource that exists all the time is on one of them.
 * - A deletion removes a resource or marks it, and marks stay. Marked resources are deleted by their finalizers'
 *   controllers, and leave their own tombstones.
 *
 * A resource whose type this server does not register can't be deleted here. Its owner's tombstone stays and
 * reports it in its status. Further passes follow at growing intervals, and write only changes. Passes of other
 * tombstones continue.
 */
export function createReaper(options: ReaperOptions = {}): Controller {
	/** The backoffs of tombstones that wait for types, by uid. */
	const backoffs = new Map<string, Backoff>();

	return defineController({
		name: reaperName,
		manages: Tombstone,
		when: contentChanged,
		concurrency: concurrentTombstones,
		initialize() {
			backoffs.clear();
		},
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const tombstone = context.cache.get(Tombstone, id);
			if (tombstone?.resource.id === undefined) {
				backoffs.delete(id.uid);
				return undefined;
			}
			const { uid } = tombstone.resource.id;
			const { unregistered, failure } = await pass(context, tombstone.data.owner, options);
			if (unregistered.size > 0) {
				await report(context, tombstone, unregistered);
			}
			if (failure !== undefined) {
				throw failure;
			}
			if (unregistered.size > 0) {
				return requeueAfter(backoffOf(context, uid).nextDelayMs());
			}
			await context.delete(tombstone.resource.id);
			backoffs.delete(uid);
			return undefined;
		},
	});

	/** The delays after passes that have left resources of unregistered types. */
	function backoffOf({ clock }: ReconcileContext, uid: string): Backoff {
		let backoff = backoffs.get(uid);
		if (backoff === undefined) {
			backoff = new Backoff({ clock, baseMs: shortestPauseMs, maxMs: longestPauseMs });
			backoffs.set(uid, backoff);
		}
		return backoff;
	}
}

/** Records on a tombstone which resources this server can't delete. */
async function report(
	context: ReconcileContext,
	{ resource, data }: Decoded<typeof Tombstone.schema>,
	unregistered: CountedTypes,
): Promise<void> {
	const conditions = [resourcesLeftCondition(ownedDeletedCondition, unregistered, unregistered)];
	const { changed } = await context.writeStatusIfChanged(resource, { conditions });
	if (changed) {
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
	/** The unmarked owned resources that this server can't delete. */
	readonly unregistered: CountedTypes;
	/** The first failure of a deletion. */
	readonly failure?: unknown;
}

/** Deletes the unmarked owned resources whose types this server registers, page by page. */
async function pass(
	{ client }: ReconcileContext,
	owner: ID | undefined,
	{ types }: Pick<ReaperOptions, "types">,
): Promise<Pass> {
	const unregistered = new Map<string, number>();
	if (owner === undefined) {
		return { unregistered };
	}
	let failure: unknown;
	let registered: ReadonlySet<string> | undefined;
	let pageToken = "";
	do {
		const page = await client.listByOwner({ owner, pageSize, pageToken }, strongly);
		registered ??= types && page.resources.length > 0 ? new Set(keysOf(types())) : undefined;
		const deletable = countOthers(page.resources, registered, unregistered);
		try {
			await forEachConcurrently(deletable, concurrentDeletions, async (id) => {
				await client.delete({ id });
			});
		} catch (error) {
			failure ??= error;
		}
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
	return { unregistered, failure };
}

function keysOf(types: readonly ResourceType[]): readonly string[] {
	return types.map(({ key }) => key);
}

/** The unmarked resources of registered types. Counts those of other types. */
function countOthers(
	resources: readonly Resource[],
	registered: ReadonlySet<string> | undefined,
	unregistered: Map<string, number>,
): readonly ID[] {
	const deletable: ID[] = [];
	for (const resource of resources) {
		const { id } = resource;
		const key = id?.type && gvkKey(id.type);
		if (id === undefined || key === undefined || isMarkedForDeletion(resource)) {
			continue;
		}
		if (registered === undefined || registered.has(key)) {
			deletable.push(id);
		} else {
			unregistered.set(key, (unregistered.get(key) ?? 0) + 1);
		}
	}
	return deletable;
}
