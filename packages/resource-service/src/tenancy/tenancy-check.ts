import { Code, ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	displayName,
	idOf,
	isMarkedForDeletion,
	Namespace,
	Partition,
	type ResourceType,
	Tombstone,
} from "@plinth/resource";
import type { Consistency, Mutation, StorageBackend } from "@plinth/storage";
import { invalidArgument } from "../errors/refusal.ts";

/** A partition or namespace that a resource lives in. */
interface TenancyUnit {
	readonly kind: "partition" | "namespace";
	readonly id: ID;
}

/** The units of a resource's tenancy, as far as its scope has them, the partition first. */
function unitsOf({ tenancy }: ID): readonly TenancyUnit[] {
	const { partition = "", namespace = "" } = tenancy ?? {};
	const units: TenancyUnit[] = [];
	if (partition) {
		units.push({ kind: "partition", id: idOf(Partition, partition) });
	}
	if (namespace) {
		units.push({ kind: "namespace", id: idOf(Namespace, namespace, { partition }) });
	}
	return units;
}

function missing({ kind, id }: TenancyUnit): string {
	return `${kind} not found: ${id.name}`;
}

/**
 * The asserts of a commit that creates a resource or changes its content: its namespace and partition exist at
 * the versions read now, which are not marked for deletion.
 *
 * @throws ConnectError InvalidArgument if one is missing or marked.
 */
export async function assertTenancy(
	backend: StorageBackend,
	type: ResourceType,
	id: ID,
	consistency: Consistency,
): Promise<readonly Mutation[]> {
	if (type.key === Tombstone.key) {
		return [];
	}
	const units: Resource[] = [];
	for (const unit of unitsOf(id)) {
		const stored = await backend.lookup(unit.id, { consistency });
		if (stored === undefined) {
			throw invalidArgument(missing(unit));
		}
		units.push(stored);
	}
	return units.map((unit) => {
		if (isMarkedForDeletion(unit) || unit.id === undefined) {
			throw invalidArgument(
				`tenancy marked for deletion: ${unit.id === undefined ? "" : displayName(unit.id)}`,
			);
		}
		return { op: "assert", id: unit.id, expectedVersion: unit.version };
	});
}

/**
 * The error for a resource that does not exist: it names the missing unit of its tenancy, if any.
 *
 * @param code - the code for a missing tenancy: NotFound for reads, InvalidArgument for writes.
 */
export async function notFoundError(
	backend: Pick<StorageBackend, "lookup">,
	id: ID,
	code: Code.NotFound | Code.InvalidArgument,
): Promise<ConnectError> {
	for (const unit of unitsOf(id)) {
		if ((await backend.lookup(unit.id)) === undefined) {
			return new ConnectError(missing(unit), code);
		}
	}
	return new ConnectError("resource not found", Code.NotFound);
}
