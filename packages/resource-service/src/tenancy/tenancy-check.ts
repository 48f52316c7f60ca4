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
import { lookUp } from "../read/look-up.ts";
import { importedTenancy } from "../write/copies.ts";

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
 * the versions read now, which are not marked for deletion. At once if they need not be waited for.
 *
 * @throws ConnectError InvalidArgument if one is missing or marked; FailedPrecondition if it belongs to an import.
 */
export function assertTenancy(
	backend: StorageBackend,
	type: ResourceType,
	id: ID,
	consistency: Consistency,
): readonly Mutation[] | Promise<readonly Mutation[]> {
	if (type.key === Tombstone.key) {
		return [];
	}
	const units = unitsOf(id);
	const read = units.map((unit) => lookUp(backend, unit.id, consistency));
	const isKnown = (each: Read): each is Resource | undefined => !(each instanceof Promise);
	return read.every(isKnown)
		? assertsOf(units, read)
		: Promise.all(read).then((resources) => assertsOf(units, resources));
}

type Read = ReturnType<typeof lookUp>;

function assertsOf(
	units: readonly TenancyUnit[],
	stored: readonly (Resource | undefined)[],
): readonly Mutation[] {
	const found = units.map((unit, at) => {
		const resource = stored[at] ?? refuse(missing(unit));
		if (resource.origin !== undefined) {
			throw importedTenancy(resource, resource.origin);
		}
		return resource;
	});
	return found.map((unit) => {
		if (isMarkedForDeletion(unit) || unit.id === undefined) {
			return refuse(
				`tenancy marked for deletion: ${unit.id === undefined ? "" : displayName(unit.id)}`,
			);
		}
		return { op: "assert", id: unit.id, expectedVersion: unit.version };
	});
}

function refuse(message: string): never {
	throw invalidArgument(message);
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
	// A copy of another region needs no partition here.
	for (const unit of id.region === undefined ? unitsOf(id) : []) {
		if ((await backend.lookup(unit.id)) === undefined) {
			return new ConnectError(missing(unit), code);
		}
	}
	return new ConnectError("resource not found", Code.NotFound);
}
