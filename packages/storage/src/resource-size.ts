import type { ID, Resource } from "@plinth/proto";

/** What each field, entry or nested message adds to its content. */
const overhead = 4;

/**
 * About how many bytes a resource takes when it is serialized, without serializing it: what limits
 * and accounts count in. Names count as ASCII, which valid ones are.
 */
export function resourceSize(resource: Resource): number {
	let size =
		idSize(resource.id) +
		idSize(resource.owner) +
		resource.version.length +
		resource.generation.length +
		2 * overhead;
	for (const key in resource.metadata) {
		size += key.length + Buffer.byteLength(resource.metadata[key] ?? "") + 2 * overhead;
	}
	for (const key in resource.status) {
		size += key.length + 4 * overhead;
		for (const condition of resource.status[key]?.conditions ?? []) {
			size +=
				condition.type.length +
				condition.reason.length +
				Buffer.byteLength(condition.message) +
				idSize(condition.resource) +
				5 * overhead;
		}
	}
	for (const owner of resource.ownerReferences) {
		size += idSize(owner) + owner.region.length + 4 * overhead;
	}
	if (resource.data !== undefined) {
		size += resource.data.typeUrl.length + resource.data.value.byteLength + 2 * overhead;
	}
	return size;
}

/** The size of what is there, if anything is. */
export function sizeOf(resource: Resource | undefined): number {
	return resource === undefined ? 0 : resourceSize(resource);
}

function idSize(
	id: (Pick<ID, "type" | "tenancy" | "name"> & { readonly uid?: string }) | undefined,
): number {
	if (id === undefined) {
		return 0;
	}
	const { type, tenancy } = id;
	return (
		id.name.length +
		(id.uid?.length ?? 0) +
		(type === undefined ? 0 : type.group.length + type.groupVersion.length + type.kind.length) +
		(tenancy === undefined ? 0 : tenancy.partition.length + tenancy.namespace.length) +
		7 * overhead
	);
}
