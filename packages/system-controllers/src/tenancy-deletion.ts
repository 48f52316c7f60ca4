import type { DescMessage } from "@bufbuild/protobuf";
import {
	type Controller,
	contentChanged,
	defineController,
	type ReconcileContext,
	type Requeue,
	requeueAfter,
} from "@plinth/controller";
import { Condition_State, type ID, type Resource, Scope } from "@plinth/proto";
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
import { countAll, deleteAll, describeRemainders, type Remainder } from "./contents.ts";

/** What the deletion of tenancies needs to know. */
export interface TenancyDeletionOptions {
	/** All types of the server: what lives in a unit of tenancy is of one of them. */
	readonly types: () => readonly ResourceType[];
	/** How often a marked unit is looked at until it is empty, in milliseconds; 1 s by default. */
	readonly everyMs?: number;
}

/** The condition of a marked partition or namespace: whether nothing is left in it. */
export const emptied = "Emptied";

/**
 * The two controllers that empty what is marked for deletion: one of namespaces, one of partitions,
 * whose namespaces are part of what they hold.
 *
 * ```
 *   marked ──▶ delete what is in it ──▶ wait for what has finalizers, and for tombstones
 *                    ▲                             │ something left: say so in the status
 *                    └───────── every second ──────┤
 *                                                  └ nothing left: remove the finalizer; it goes
 * ```
 *
 * Why nothing is left behind: whatever creates a resource in a marked unit, or changes its content,
 * fails in its commit, so that after the mark only deletions, statuses and tombstones are written. A
 * look that is not older than the mark, finds nothing of any type and then no tombstone has seen the
 * end: what could still write a tombstone is itself gone.
 */
export function createTenancyDeletion(options: TenancyDeletionOptions): readonly Controller[] {
	return [
		controllerOf(
			"namespace-deletion",
			Namespace,
			Scope.NAMESPACE,
			options,
			({ tenancy, name }) => ({
				partition: tenancy?.partition ?? "",
				namespace: name,
			}),
		),
		controllerOf("partition-deletion", Partition, Scope.PARTITION, options, ({ name }) => ({
			partition: name,
			namespace: "*",
		})),
	];
}

function controllerOf<Desc extends DescMessage>(
	name: string,
	manages: ResourceType<Desc>,
	scope: Scope,
	{ types, everyMs = 1_000 }: TenancyDeletionOptions,
	tenancyOf: (id: ID) => TenancyLike,
): Controller {
	return defineController({
		name,
		manages,
		when: contentChanged,
		concurrency: 4,
		async reconcile(context, { id }): Promise<Requeue | undefined> {
			const unit = context.cache.get(manages, id)?.resource;
			if (
				unit === undefined ||
				!isMarkedForDeletion(unit) ||
				!hasFinalizer(unit, tenancyFinalizer)
			) {
				return undefined;
			}
			const tenancy = tenancyOf(id);
			const contents = types().filter((type) => type.scope === scope && type.key !== Tombstone.key);
			const left = await empty(context, contents, tenancy);
			if (left.length > 0) {
				await report(context, unit, left);
				const failed = left.find(({ failure }) => failure !== undefined);
				if (failed !== undefined) {
					throw failed.failure;
				}
				return requeueAfter(everyMs);
			}
			await release(context, unit);
			return undefined;
		},
	});
}

async function empty(
	context: ReconcileContext,
	types: readonly ResourceType[],
	tenancy: TenancyLike,
): Promise<readonly Remainder[]> {
	const remainders: Remainder[] = [];
	for (const type of types) {
		remainders.push(await deleteAll(context, type, tenancy));
	}
	// Last: as long as there is anything else, its deletion may still write tombstones.
	remainders.push(await countAll(context, Tombstone, tenancy));
	return remainders.filter(({ count }) => count > 0);
}

async function report(
	context: ReconcileContext,
	unit: Resource,
	left: readonly Remainder[],
): Promise<void> {
	await context.writeStatusIfChanged(unit, {
		conditions: [
			{
				type: emptied,
				state: Condition_State.FALSE,
				reason: "ResourcesLeft",
				message: `still there: ${describeRemainders(left)}`,
			},
		],
	});
}

/** Removes the finalizer; with it, where it was the last one, the unit goes. */
async function release(context: ReconcileContext, unit: Resource): Promise<void> {
	const finalizers = finalizersOf(unit).filter((name) => name !== tenancyFinalizer);
	await context.client.write({
		resource: { ...unit, metadata: { ...unit.metadata, [finalizersKey]: finalizers.join(" ") } },
	});
}
