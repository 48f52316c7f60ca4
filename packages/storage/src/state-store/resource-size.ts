import type { ID, Origin, Resource } from "@plinth/proto";

/** The bytes that each field, entry or nested message adds to its content. */
const overhead = 4;

/**
 * Estimates the serialized size of a resource in bytes, without serializing it. Limits on resources and
 * commits use it. Names count as ASCII, which valid ones are.
 */
export function resourceSize(resource: Resource): number {
	let size =
		idSize(resource.id) +
		(resource.id?.region?.length ?? 0) +
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
	if (resource.origin !== undefined) {
		size += originSize(resource.origin);
	}
	if (resource.data !== undefined) {
		size += resource.data.typeUrl.length + resource.data.value.byteLength + 2 * overhead;
	}
	return size;
}

function originSize(origin: Origin): number {
	const { cluster, region, incarnation, uid, version, partition, path, peering } = origin;
	const texts = [cluster, region, incarnation, uid, version, partition, peering, ...path];
	return texts.reduce((size, text) => size + text.length + overhead, overhead);
}

/*
 * The memory of objects beyond their content: on the heap, in the indexes of a store, and for `data` in the
 * buffer that contains it. Measured with Node 26, and rounded up.
 */

/** A resource, with its id and its index entries. */
const objectBytes = 1_200;
/** An owner, or another id within a resource. */
const idBytes = 512;
/** A status or a condition. */
const statusBytes = 128;
/** An entry of the metadata. */
const metadataBytes = 32;

/**
 * Estimates the memory of a stored resource in bytes: its `resourceSize` plus the overhead of its objects.
 * Memory limits use it; limits on one resource or one commit do not.
 */
export function memorySize(resource: Resource | undefined): number {
	if (resource === undefined) {
		return 0;
	}
	let size = resourceSize(resource) + objectBytes;
	if (resource.owner !== undefined) {
		size += idBytes;
	}
	if (resource.origin !== undefined) {
		size += idBytes;
	}
	size += resource.ownerReferences.length * idBytes;
	for (const _ in resource.metadata) {
		size += metadataBytes;
	}
	for (const key in resource.status) {
		size += statusBytes;
		for (const { resource: subject } of resource.status[key]?.conditions ?? []) {
			size += statusBytes + (subject === undefined ? 0 : idBytes);
		}
	}
	return size;
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
