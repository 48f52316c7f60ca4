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
	Partition,
	type ResourceType,
	type TenancyLike,
	Tombstone,
	tenancyFinalizer,
} from "@plinth/resource";
import { deleteAll } from "./contents.ts";
import { type CountedTypes, countsOf } from "./counted-types.ts";
import { leftCondition, waitsForTypes } from "./unregistered-types.ts";

/** What the deletion of tenancies needs to know. */
export interface TenancyDeletionOptions {
	/** The types that this server registers. */
	readonly types: () => readonly ResourceType[];
	/**
	 * How many resources of each type, by its key, are stored in a namespace or, where none is named, in a
	 * partition with all its namespaces: of all types, registered or not, read strongly.
	 */
	readonly census: (unit: {
		readonly partition: string;
		readonly namespace?: string;
	}) => Promise<CountedTypes>;
	/** How often a marked unit is looked at until it is empty, in milliseconds; 1 s by default. */
	readonly everyMs?: number;
	/** The same where only resources of unregistered types are left; 10 s by default. */
	readonly unregisteredEveryMs?: number;
}

/** The condition of a marked partition or namespace: whether nothing is left in it. */
export const emptied = "Emptied";

/** A kind of unit, and what is in it. */
interface UnitKind<Desc extends DescMessage> {
	/** The name of its controller, and the status that the controller writes. */
	readonly controller: string;
	readonly manages: ResourceType<Desc>;
	/** What names a unit in a list of its resources. */
	readonly listedBy: (id: ID) => TenancyLike;
	/** What names it in a census. */
	readonly countedBy: (id: ID) => { readonly partition: string; readonly namespace?: string };
	/** Whether to delete resources of the type, given what the unit holds. */
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
	// Each namespace has its own deletion. What is in a namespace that is no more would stay for ever.
	deletes: (type, counts) => type.scope === Scope.PARTITION || !counts.has(Namespace.key),
};

/**
 * The two controllers that empty what is marked for deletion: one of namespaces, one of partitions,
 * whose namespaces are part of what they hold.
 *
 * ```
 *   marked ──▶ delete what is in it ──▶ wait for what has finalizers, and for tombstones
 *                    ▲                             │ something left: report it in the status
 *                    └───────── every second ──────┤
 *                                                  └ nothing left: remove the finalizer; it goes
 * ```
 *
 * Why nothing is left behind: whatever creates a resource in a marked unit, or changes its content, asserts
 * in its commit that the unit is unmarked, and fails. A deletion puts one tombstone in the place of what it
 * removes. So after the mark the number of resources in the unit never grows, whoever writes, and a
 * census that is not older than the mark and counts nothing stays true until the unit is gone. The census
 * comes from the storage: it counts all types, also those that this server does not register. The
 * resource service checks the same before it lets the finalizer go (tenancy-check.ts there).
 */
export function createTenancyDeletion(options: TenancyDeletionOptions): readonly Controller[] {
	return [deletionOf(namespaces, options), deletionOf(partitions, options)];
}

/**
 * Two controllers for each server of a cluster. They delete what the controllers of `createTenancyDeletion`
 * have reported as of unregistered types, as far as their own server registers those types: servers of one
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
	const { everyMs = 1_000, unregisteredEveryMs = 10_000 } = options;
	return defineController({
		name: kind.controller,
		manages: kind.manages,
		when: contentChanged,
		concurrency: 4,
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const unit = context.cache.get(kind.manages, id)?.resource;
			if (unit?.id === undefined || !isMarkedForDeletion(unit)) {
				return undefined;
			}
			const failure = await deleteRegistered(context, unit.id, kind, options);
			const left = await options.census(kind.countedBy(unit.id));
			if (left.size === 0) {
				await release(context, unit);
				return undefined;
			}
			const registered = new Set(options.types().map(({ key }) => key));
			const unregistered = countsOf(left, (key) => !registered.has(key));
			await context.writeStatusIfChanged(unit, {
				conditions: [leftCondition(emptied, left, unregistered)],
			});
			if (failure !== undefined) {
				throw failure;
			}
			return requeueAfter(unregistered.size === left.size ? unregisteredEveryMs : everyMs);
		},
	});
}

function localDeletionOf<Desc extends DescMessage>(
	kind: UnitKind<Desc>,
	options: Pick<TenancyDeletionOptions, "types" | "census">,
): Controller {
	return defineController({
		name: `${kind.controller}-local`,
		manages: kind.manages,
		placement: "each-server",
		when: statusChanged,
		concurrency: 4,
		async reconcile(context, { id }): Promise<void> {
			const unit = context.cache.get(kind.manages, id)?.resource;
			if (
				unit?.id === undefined ||
				!isMarkedForDeletion(unit) ||
				!waitsForTypes(unit, kind.controller)
			) {
				return;
			}
			const failure = await deleteRegistered(context, unit.id, kind, options);
			if (failure !== undefined) {
				throw failure;
			}
		},
	});
}

/** Deletes what is in the unit, as far as this server registers the types. Returns the first failure. */
async function deleteRegistered<Desc extends DescMessage>(
	context: ReconcileContext,
	unit: ID,
	kind: UnitKind<Desc>,
	{ types, census }: Pick<TenancyDeletionOptions, "types" | "census">,
): Promise<unknown> {
	const counts = await census(kind.countedBy(unit));
	let failure: unknown;
	for (const type of types()) {
		// Tombstones are the reaper's.
		if (counts.has(type.key) && type.key !== Tombstone.key && kind.deletes(type, counts)) {
			const failed = await deleteAll(context, type, kind.listedBy(unit), unit);
			failure ??= failed;
		}
	}
	return failure;
}

/** Removes the finalizer; with it, where it was the last one, the unit goes. */
async function release(context: ReconcileContext, unit: Resource): Promise<void> {
	if (!hasFinalizer(unit, tenancyFinalizer)) {
		return;
	}
	const finalizers = finalizersOf(unit).filter((name) => name !== tenancyFinalizer);
	await context.client.write({
		resource: { ...unit, metadata: { ...unit.metadata, [finalizersKey]: finalizers.join(" ") } },
	});
}
