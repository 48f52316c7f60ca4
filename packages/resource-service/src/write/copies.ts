import { Code, ConnectError } from "@connectrpc/connect";
import type { Origin, Resource } from "@plinth/proto";
import { displayName } from "@plinth/resource";
import { invalidArgument } from "../errors/refusal.ts";

/*
 * Copies of resources of other clusters have an origin, and so has what an import creates for them: its partition and the
 * namespaces there. Only the import writes them, beside this service. So a stored resource with an origin can't be
 * written, and nothing can be created in a partition with an origin: each commit that creates a resource asserts the
 * version of its partition (`assertTenancy`), and an import never takes over a partition that exists.
 */

/**
 * Refuses to change a copy.
 *
 * @throws ConnectError FailedPrecondition that names the original and its cluster.
 */
export function refuseCopy(stored: Resource): void {
	const { id, origin } = stored;
	if (origin === undefined || id === undefined) {
		return;
	}
	const what = displayName(id);
	throw new ConnectError(
		origin.uid === ""
			? `${what} belongs to an import from ${peerOf(origin)}, which removes it: delete the Import`
			: `${what} is a copy: change the original, ${displayName({ ...id, tenancy: { ...id.tenancy, partition: origin.partition } })} in the cluster ${origin.cluster}, copied from ${peerOf(origin)}`,
		Code.FailedPrecondition,
	);
}

/**
 * The error for a resource that would be created in the partition or namespace of an import.
 *
 * @param unit - the partition or namespace.
 */
export function importedTenancy({ id }: Resource, origin: Origin): ConnectError {
	return new ConnectError(
		`${id === undefined ? "the tenancy" : displayName(id)} is only written by an import from ${peerOf(origin)}: use another partition, or write in that cluster`,
		Code.FailedPrecondition,
	);
}

/** An origin in a write is refused: the server sets it. @throws ConnectError InvalidArgument. */
export function refuseOrigin({ origin }: Resource): void {
	if (origin !== undefined) {
		throw invalidArgument(
			"resource.origin is automatically set for copies and cannot be provided: leave it out",
		);
	}
}

function peerOf({ peering }: Origin): string {
	return `the peering ${peering}`;
}
