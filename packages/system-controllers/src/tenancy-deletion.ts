import type { DescMessage } from "@bufbuild/protobuf";
import {
	type Controller,
	contentChanged,
	defineController,
	type ReconcileContext,
	type Requeue,
	requeueAfter,
	statusChanged,
} from "@plinth/controller";
import { type ID, type Resource, Scope } from "@plinth/proto";
import {
	finalizersKey,
	finalizersOf,
	hasFinalizer,
	isMarkedForDeletion,
	Namespace,
	nameKey,
	Partition,
	type ResourceType,
	type TenancyLike,
	Tombstone,
	tenancyFinalizer,
} from "@plinth/resource";
import { Backoff, type Clock } from "@plinth/runtime";
import { type CountedTypes, countsOf } from "./counted-types.ts";
import { deleteContents } from "./delete-contents.ts";
import { resourcesLeftCondition, waitsForTypes } from "./unregistered-types.ts";

/** Options of the deletion of tenancies. */
export interface TenancyDeletionOptions {
	/** The types that this server registers. */
	readonly types: () => readonly ResourceType[];
	/**
	 * Counts the resources of each type, by key, in a namespace, or in a partition with all its namespaces if no
	 * namespace is given. Must include unregistered types, and read strongly.
	 */
	readonly census: (unit: {
		readonly partition: string;
		readonly namespace?: string;
	}) => Promise<CountedTypes>;
	/**
	 * The longest interval between two counts of what is left in a marked unit, in milliseconds. Default: 1 s. The
	 * first interval is 1/20 of it, and each is twice the one before.
	 */
	readonly intervalMs?: number;
	/** The interval if only resources of unregistered types are left, in milliseconds. Default: 10 s. */
	readonly unregisteredIntervalMs?: number;
}

/** The type of the condition of a marked partition or namespace: nothing is left in it. */
export const emptiedCondition = "Emptied";

/** A kind of tenancy unit: partitions or namespaces. */
interface UnitKind<Desc extends DescMessage> {
	/** The name of its controller, and the key of the status that the controller writes. */
	readonly controller: string;
	readonly manages: ResourceType<Desc>;
	/** The tenancy that selects the resources of a unit in a list. */
	readonly listedBy: (id: ID) => TenancyLike;
	/** The unit in a census. */
	readonly countedBy: (id: ID) => { readonly partition: string; readonly namespace?: string };
	/** Whether to delete resources of the type, given the counts of the unit. */
	readonly deletes: (type: ResourceType, counts: CountedTypes) => boolean;
}

const namespaces: UnitKind<typeof Namespace.schema> = {
	controller: "namespace-deletion",
	manages: Namespace,
	listedBy: ({ tenancy, name }) => ({ partition: tenancy?.partition ?? "", namespace: name }),
	countedBy: ({ tenancy, name }) => ({ partition: tenancy?.partition ?? "", namespace: name }),
	deletes: () => true,
};

const partitions: UnitKind<typeof Partition.schema> = {
	controller: "partition-deletion",
	manages: Partition,
	listedBy: ({ name }) => ({ partition: name, namespace: "*" }),
	countedBy: ({ name }) => ({ partition: name }),
	// Each namespace is deleted by itself. Resources of a namespace that no longer exists are deleted here.
	deletes: (type, counts) => type.scope === Scope.PARTITION || !counts.has(Namespace.key),
};

/**
 * The two controllers that empty units marked for deletion: one for namespaces, and one for partitions with
 * their namespaces.
 *
 * ```
 *   marked ──▶ count ──▶ delete each type that was not deleted yet ──▶ count ──▶ none left: remove the finalizer,
 *                ▲                                                       │       which deletes the unit
 *                └──────── wait for finalizers and tombstones ◀──────────┘
 * ```
 *
 * Each type is listed once: when all listed resources are deleted or marked, the unit holds no unmarked resource
 * of the type any more (see below). From then on the unit is only counted, which does not depend on the number of
 * resources. A type is listed again if a deletion failed, and after a restart.
 *
 * Nothing is left behind: every commit that creates a resource in a unit, or changes its content, asserts that
 * the unit is unmarked. A deletion replaces a resource by one tombstone. So after the mark the number of
 * resources in the unit never grows, and a census that is newer than the mark and counts zero stays valid until
 * the unit is deleted. The census comes from the storage and counts all types, including those that this server
 * does not register. The resource service checks the same before it accepts the removal of the finalizer (see
 * its tenancy-check.ts).
 */
export function createTenancyDeletion(options: TenancyDeletionOptions): readonly Controller[] {
	return [deletionOf(namespaces, options), deletionOf(partitions, options)];
}

/**
 * Two controllers for each server of a cluster. They delete the resources that the controllers of
 * `createTenancyDeletion` have reported as unregistered, if their own server registers the types: servers of one
 * cluster may have different modules.
 */
export function createLocalTenancyDeletion(
	options: Pick<TenancyDeletionOptions, "types" | "census">,
): readonly Controller[] {
	return [localDeletionOf(namespaces, options), localDeletionOf(partitions, options)];
}

function deletionOf<Desc extends DescMessage>(
	kind: UnitKind<Desc>,
	options: TenancyDeletionOptions,
): Controller {
	const { intervalMs = 1_000, unregisteredIntervalMs = 10_000 } = options;
	const units = new Map<string, UnitProgress>();
	return defineController({
		name: kind.controller,
		manages: kind.manages,
		when: contentChanged,
		concurrency: 4,
		initialize() {
			units.clear();
		},
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const unit = context.cache.get(kind.manages, id)?.resource;
			if (unit?.id === undefined || !isMarkedForDeletion(unit)) {
				units.delete(nameKey(id));
				return undefined;
			}
			const progress = progressOf(units, unit.id, { clock: context.clock, intervalMs });
			const { left, failure } = await empty(context, unit.id, progress, kind, options);
			if (left.size === 0) {
				await release(context, unit);
				return undefined;
			}
			const unregistered = unregisteredOf(left, progress, options);
			const delayMs = progress.intervals.nextDelayMs();
			// A deletion that takes less than the longest interval is not worth the commits of a status.
			if (delayMs >= intervalMs || unregistered.size > 0 || failure !== undefined) {
				await context.writeStatusIfChanged(unit, {
					conditions: [resourcesLeftCondition(emptiedCondition, left, unregistered)],
				});
			}
			if (failure !== undefined) {
				throw failure;
			}
			return requeueAfter(unregistered.size === left.size ? unregisteredIntervalMs : delayMs);
		},
	});
}

function localDeletionOf<Desc extends DescMessage>(
	kind: UnitKind<Desc>,
	options: Pick<TenancyDeletionOptions, "types" | "census">,
): Controller {
	const units = new Map<string, UnitProgress>();
	return defineController({
		name: `${kind.controller}-local`,
		manages: kind.manages,
		placement: "each-server",
		when: statusChanged,
		concurrency: 4,
		initialize() {
			units.clear();
		},
		async reconcile(context, { id }): Promise<void> {
			const unit = context.cache.get(kind.manages, id)?.resource;
			if (unit?.id === undefined || !isMarkedForDeletion(unit)) {
				units.delete(nameKey(id));
				return;
			}
			if (waitsForTypes(unit, kind.controller)) {
				const progress = progressOf(units, unit.id, { clock: context.clock, intervalMs: 0 });
				const { failure } = await empty(context, unit.id, progress, kind, options);
				if (failure !== undefined) {
					throw failure;
				}
			}
		},
	});
}

/** What a controller has done about one marked unit since the start of its run. */
interface UnitProgress {
	readonly uid: string;
	/** The keys of the types of which the unit holds no unmarked resource. Holds until the unit is deleted. */
	readonly deleted: Set<string>;
	/** The intervals until the next count. */
	readonly intervals: Backoff;
}

/** The progress of this incarnation of the unit. */
function progressOf(
	units: Map<string, UnitProgress>,
	unit: ID,
	{ clock, intervalMs }: { readonly clock: Clock; readonly intervalMs: number },
): UnitProgress {
	const key = nameKey(unit);
	let progress = units.get(key);
	if (progress?.uid !== unit.uid) {
		const intervals = new Backoff({ clock, baseMs: intervalMs / 20, maxMs: intervalMs });
		progress = { uid: unit.uid, deleted: new Set(), intervals };
		units.set(key, progress);
	}
	return progress;
}

/**
 * Deletes the contents of the unit whose types this server registers, except for types that it has deleted
 * before. Returns what is left, and the first failure.
 */
async function empty<Desc extends DescMessage>(
	context: ReconcileContext,
	unit: ID,
	{ deleted }: UnitProgress,
	kind: UnitKind<Desc>,
	{ types, census }: Pick<TenancyDeletionOptions, "types" | "census">,
): Promise<{ readonly left: CountedTypes; readonly failure?: unknown }> {
	const counts = await census(kind.countedBy(unit));
	const hasMore = counts.keys().some((key) => !isHandled(key, deleted));
	const due = hasMore
		? types().filter(
				(type) =>
					counts.has(type.key) && !isHandled(type.key, deleted) && kind.deletes(type, counts),
			)
		: [];
	if (due.length === 0) {
		return { left: counts };
	}
	const { complete, failure } = await deleteContents(context, due, kind.listedBy(unit), unit);
	for (const key of complete) {
		deleted.add(key);
	}
	return { left: await census(kind.countedBy(unit)), failure };
}

/** Whether nothing is left to delete of the type. The reaper deletes tombstones. */
function isHandled(key: string, deleted: ReadonlySet<string>): boolean {
	return key === Tombstone.key || deleted.has(key);
}

/** The counts of the types that this server does not register. */
function unregisteredOf(
	left: CountedTypes,
	{ deleted }: UnitProgress,
	{ types }: Pick<TenancyDeletionOptions, "types">,
): CountedTypes {
	const unknown = countsOf(left, (key) => !isHandled(key, deleted));
	if (unknown.size === 0) {
		return unknown;
	}
	const registered = new Set(types().map(({ key }) => key));
	return countsOf(unknown, (key) => !registered.has(key));
}

/** Removes the finalizer. If it was the last one, the unit is deleted. */
async function release(context: ReconcileContext, unit: Resource): Promise<void> {
	if (!hasFinalizer(unit, tenancyFinalizer)) {
		return;
	}
	const finalizers = finalizersOf(unit).filter((name) => name !== tenancyFinalizer);
	await context.client.write({
		resource: { ...unit, metadata: { ...unit.metadata, [finalizersKey]: finalizers.join(" ") } },
	});
}
