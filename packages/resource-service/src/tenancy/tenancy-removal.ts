import { Code, ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	displayName,
	hasFinalizer,
	isMarkedForDeletion,
	Namespace,
	Partition,
	tenancyFinalizer,
} from "@plinth/resource";
import type { StorageBackend, TenancyUnit } from "@plinth/storage";

/*
 * A partition or a namespace (a unit) is deleted only when no resource of any type is stored in it. This holds
 * although counting the resources and deleting the unit are two steps:
 *
 * 1. A unit is deleted only when it is marked for deletion. A deletion request only marks it, even if it has no
 *    finalizers.
 * 2. A mark stays until the unit is deleted (`checkMarked`).
 * 3. Each commit that creates a resource in a unit, or changes its content, asserts the version at which the
 *    unit was read unmarked (`assertTenancy`). Marking changes the version, so no such commit succeeds after
 *    the mark. Statuses and finalizers of existing resources can still be written.
 * 4. A deletion replaces a resource by one tombstone (`deletionWithTombstone`), in one commit.
 *
 * By 3 and 4 the number of resources in a marked unit never grows. A count of zero that is not older than the
 * mark therefore stays valid until the unit is deleted. The deletion expects the marked version, so it can't
 * delete another incarnation.
 *
 * Servers of older versions did not follow these rules, and may have left resources behind in deleted units. So a
 * unit can't be created either while resources are stored in it (`checkNothingLeftBehind`).
 */

/** The unit of tenancy that an ID names, or `undefined` if it names another resource. */
function tenancyUnitOf({ type, tenancy, name }: ID): TenancyUnit | undefined {
	if (type?.group !== Namespace.type.group) {
		return undefined;
	}
	switch (type.kind) {
		case Partition.type.kind:
			return { partition: name };
		case Namespace.type.kind:
			return { partition: tenancy?.partition ?? "", namespace: name };
		default:
			return undefined;
	}
}

/**
 * Checks that a unit of tenancy is empty before it loses the finalizer that keeps it until then.
 *
 * @throws ConnectError FailedPrecondition if resources are stored in the unit.
 */
export async function checkUnitIsEmpty(
	backend: StorageBackend,
	stored: Resource,
	next: Pick<Resource, "metadata">,
): Promise<void> {
	const unit = stored.id && tenancyUnitOf(stored.id);
	if (unit === undefined || hasFinalizer(next, tenancyFinalizer)) {
		return;
	}
	// The stored resource was read with its mark. A strong count is not older than that read.
	const counts = await backend.countByTypeIn(unit, { consistency: "strong" });
	if (counts.size > 0) {
		const name = stored.id && displayName(stored.id);
		throw new ConnectError(
			`${name} is not empty: its status lists the remaining resources. The server removes the finalizer ${tenancyFinalizer} once it is empty`,
			Code.FailedPrecondition,
		);
	}
}

/**
 * Checks that no resources are stored in a new unit of tenancy: a deleted unit with the same name may have left
 * some behind.
 *
 * @throws ConnectError FailedPrecondition if resources are stored in it.
 */
export async function checkNothingLeftBehind(backend: StorageBackend, created: ID): Promise<void> {
	const unit = tenancyUnitOf(created);
	if (unit === undefined) {
		return;
	}
	const counts = await backend.countByTypeIn(unit, { consistency: "strong" });
	const remaining = counts.values().reduce((sum, count) => sum + count, 0);
	if (remaining > 0) {
		const resources = remaining === 1 ? "1 resource" : `${remaining} resources`;
		const kind = created.type?.kind.toLowerCase();
		throw new ConnectError(
			`${displayName(created)} can't be created: a deleted ${kind} of the same name still contains ${resources}, tombstones included. Wait until it is empty; a server deletes only resources of types that it registers`,
			Code.FailedPrecondition,
		);
	}
}

/** Whether the resource is a unit of tenancy, which is removed only when it is empty. */
export function mustBeEmpty({ id }: Resource): boolean {
	return id !== undefined && tenancyUnitOf(id) !== undefined;
}

/** Whether a deletion must mark the resource first even if it has no finalizer: an unmarked unit. */
export function mustBeMarkedFirst(stored: Resource): boolean {
	return (
		stored.id !== undefined &&
		tenancyUnitOf(stored.id) !== undefined &&
		!isMarkedForDeletion(stored)
	);
}
