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
 * A partition or a namespace is removed only when nothing is stored in it, of whatever type, whoever removes
 * it. What makes this hold, though the census and the removal are two steps:
 *
 * 1. A unit is removed only when it is marked for deletion: where others are deleted at once, it is marked.
 * 2. A mark stays until the unit is gone (`checkMarked`).
 * 3. Each commit that creates a resource in a unit, or changes its content, asserts the unit at the version
 *    at which it was seen unmarked (`assertTenancy`). Marking changes the version, so no such commit
 *    succeeds after the mark. Statuses and finalizers of what is there can still be written.
 * 4. A removal puts one tombstone in the place of what it removes (`deletionWithTombstone`), in one commit.
 *
 * By 3 and 4 the number of resources in a marked unit never grows. So a census that is not older than
 * the mark, and counts nothing, stays true until the unit is gone; and the removal expects the marked
 * version, so that it can't hit another incarnation.
 *
 * Servers of older versions do not keep to this, and have left resources behind in units that are gone. So a unit
 * is not created either while something is stored in it (`checkVacant`).
 */

/** What an ID names as a unit of tenancy, or `undefined` where it names another resource. */
export function unitNamed({ type, tenancy, name }: ID): TenancyUnit | undefined {
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
 * Checks a write of a marked resource, by which a unit of tenancy may lose the finalizer that keeps it until
 * it is empty.
 *
 * @throws ConnectError FailedPrecondition where something is stored in the unit.
 */
export async function checkRelease(
	backend: StorageBackend,
	stored: Resource,
	next: Pick<Resource, "metadata">,
): Promise<void> {
	const unit = stored.id && unitNamed(stored.id);
	if (unit === undefined || hasFinalizer(next, tenancyFinalizer)) {
		return;
	}
	// The stored resource was read from a state that has the mark; a strong census is not older.
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
 * Checks that nothing is stored in a unit of tenancy that is created: a deleted one of the same name may have
 * left resources.
 *
 * @throws ConnectError FailedPrecondition where something is stored in it.
 */
export async function checkVacant(backend: StorageBackend, created: ID): Promise<void> {
	const unit = unitNamed(created);
	if (unit === undefined) {
		return;
	}
	const counts = await backend.countByTypeIn(unit, { consistency: "strong" });
	const remaining = counts.values().reduce((sum, count) => sum + count, 0);
	if (remaining > 0) {
		const resources = remaining === 1 ? "1 resource" : `${remaining} resources`;
		throw new ConnectError(
			`${displayName(created)} can't be created: ${resources} of a deleted one of the same name must be deleted first, tombstones included. A server deletes only resources of types that it registers`,
			Code.FailedPrecondition,
		);
	}
}

/** Whether a deletion must mark the resource first though it has no finalizer: a unit that is unmarked. */
export function mustBeMarkedFirst(stored: Resource): boolean {
	return (
		stored.id !== undefined && unitNamed(stored.id) !== undefined && !isMarkedForDeletion(stored)
	);
}
