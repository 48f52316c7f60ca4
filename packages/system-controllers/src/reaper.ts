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
import { each } from "./each.ts";
import { leftCondition, waitsForTypes } from "./unregistered-types.ts";

/** What may be changed about the reaper. */
export interface ReaperOptions {
	/** How long after the first pass the second one comes, in milliseconds; 30 s by default. */
	readonly secondPassAfterMs?: number;
	/** The types that this server registers. Without it, any type is taken for registered. */
	readonly types?: () => readonly ResourceType[];
}

/** The name of the reaper, and its entry in the statuses of tombstones. */
export const reaperName = "reaper";

/** The condition of a tombstone whose owned resources have been deleted once. */
export const firstPassDone = "FirstPassDone";

/** The condition of a tombstone that can't go: what is left is of types that this server does not register. */
export const ownedDeleted = "OwnedDeleted";

/** The longest time between two passes of a tombstone that waits for a server with more types. */
const mostBetweenPassesMs = 2 * 60_000;

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
 *
 * A resource whose type this server does not register can't be deleted here. Its owner's tombstone stays,
 * and reports it in its status; passes come at growing intervals, and cost no write where nothing has
 * changed. Passes of other tombstones go on.
 */
export function createReaper(options: ReaperOptions = {}): Controller {
	const { secondPassAfterMs = 30_000 } = options;
	/** When tombstones had their last pass, by uid, on the monotonic clock. */
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
			const maxMs = Math.max(mostBetweenPassesMs, secondPassAfterMs);
			backoff = new Backoff({ clock, baseMs: secondPassAfterMs, maxMs });
			backoffs.set(uid, backoff);
		}
		return backoff;
	}

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

/** Writes to a tombstone that the first pass has been, and what the server can't delete. */
async function report(
	context: ReconcileContext,
	{ resource, data }: Decoded<typeof Tombstone.schema>,
	unregistered: CountedTypes,
	isPassDone: boolean,
): Promise<void> {
	const isHeldUp = unregistered.size > 0;
	const conditions = [
		...(isPassDone ? [{ type: firstPassDone, state: Condition_State.TRUE }] : []),
		...(isHeldUp ? [leftCondition(ownedDeleted, unregistered, unregistered)] : []),
	];
	if (conditions.length === 0) {
		return;
	}
	const { changed } = await context.writeStatusIfChanged(resource, { conditions });
	if (changed && isHeldUp) {
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
 * A controller for each server of a cluster: it deletes what the reaper has reported as of unregistered
 * types, as far as its own server registers them. The reaper's next pass finds it gone.
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

/** What a pass has found. */
interface Pass {
	/** How many resources the owner owned. */
	readonly owned: number;
	/** How many of them were not marked. */
	readonly left: number;
	/** Those of them that this server can't delete. */
	readonly unregistered: CountedTypes;
	/** Why the first one that could not be deleted could not. */
	readonly failure?: unknown;
}

/** Deletes what is owned and not marked, as far as this server registers the types. */
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
		await each(deletable, deletionsAtOnce, async (id) => {
			await client.delete({ id });
		});
		return found;
	} catch (failure) {
		return { ...found, failure };
	}
}
