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
import { type CountedTypes, countsOf } from "./counted-types.ts";
import { deleteAll } from "./delete-contents.ts";
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
	/** The interval between two passes over a marked unit, in milliseconds. Default: 1 s. */
	readonly intervalMs?: number;
	/** The same if only resources of unregistered types are left. Default: 10 s. */
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
 *   marked ──▶ delete its contents ──▶ wait for resources with finalizers, and for tombstones
 *                    ▲                             │ resources left: report them in the status
 *                    └───────── every second ──────┤
 *                                                  └ none left: remove the finalizer, which deletes the unit
 * ```
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
				conditions: [resourcesLeftCondition(emptiedCondition, left, unregistered)],
			});
			if (failure !== undefined) {
				throw failure;
			}
			return requeueAfter(unregistered.size === left.size ? unregisteredIntervalMs : intervalMs);
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

/** Deletes the contents of the unit whose types this server registers. Returns the first failure. */
async function deleteRegistered<Desc extends DescMessage>(
	context: ReconcileContext,
	unit: ID,
	kind: UnitKind<Desc>,
	{ types, census }: Pick<TenancyDeletionOptions, "types" | "census">,
): Promise<unknown> {
	const counts = await census(kind.countedBy(unit));
	let failure: unknown;
	for (const type of types()) {
		// The reaper deletes tombstones.
		if (counts.has(type.key) && type.key !== Tombstone.key && kind.deletes(type, counts)) {
			const failed = await deleteAll(context, type, kind.listedBy(unit), unit);
			failure ??= failed;
		}
	}
	return failure;
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
