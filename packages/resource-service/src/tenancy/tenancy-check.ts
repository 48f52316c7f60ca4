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

/** The partition and the namespace that a resource lives in, as far as its scope has them. */
export interface TenancyUnits {
	/** The units that exist. */
	readonly units: readonly Resource[];
	/** The message for the first unit that does not exist. */
	readonly missing?: string;
}

/** Reads the units of a resource's tenancy, the partition first. */
async function readTenancy(
	backend: StorageBackend,
	id: ID,
	consistency: Consistency,
): Promise<TenancyUnits> {
	const { partition = "", namespace = "" } = id.tenancy ?? {};
	const units: Resource[] = [];
	for (const [kind, unit, name] of [
		["partition", Partition, partition],
		["namespace", Namespace, namespace],
	] as const) {
		if (!name) {
			continue;
		}
		const stored = await backend.lookup(idOf(unit, name, { partition }), { consistency });
		if (stored === undefined) {
			return { units, missing: `${kind} not found: ${name}` };
		}
		units.push(stored);
	}
	return { units };
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
	const { units, missing } = await readTenancy(backend, id, consistency);
	if (missing !== undefined) {
		throw invalidArgument(missing);
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
	backend: StorageBackend,
	id: ID,
	code: Code.NotFound | Code.InvalidArgument,
): Promise<ConnectError> {
	const { missing } = await readTenancy(backend, id, "eventual");
	return missing === undefined
		? new ConnectError("resource not found", Code.NotFound)
		: new ConnectError(missing, code);
}
