import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import {
	type ResourceShadow as ResourceShadowMessage,
	ResourceShadowSchema,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	decodeShared,
	defineType,
	denied,
	encodeData,
	idOf,
	newUlid,
	resourceOf,
} from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, ReadOptions, StorageBackend } from "@plinth/storage";
import { keyOf } from "./resource-key.ts";
import { shadowName } from "./shadow.ts";

/** The type of shadows and of the other records of this package: `schema.v1.ResourceShadow`. */
export const ResourceShadow = defineType(ResourceShadowSchema, {
	authorize: {
		write: () => denied("resource shadows are kept by the server: they can't be written"),
	},
});

/** The contents of a record. */
export type RecordInit = MessageInitShape<typeof ResourceShadowSchema>["record"];

/** A stored record. */
export interface StoredRecord {
	readonly resource: Resource;
	readonly record: ResourceShadowMessage["record"];
}

/** A stored shadow. */
export interface StoredShadow {
	readonly name: string;
	readonly resource: Resource;
	readonly version: string;
	readonly shadow: Shadow;
}

/** The ID of a record. */
export function recordId(name: string): ID {
	return idOf(ResourceShadow, name);
}

/**
 * An assert that the resource has no shadow: nothing references or owns it, or may, and none of its own references is
 * recorded.
 */
export function assertUnreferenced(id: ID): Mutation {
	return { op: "assert", id: recordId(shadowName(keyOf(id, ""))), expectedVersion: "" };
}

/** A record, or `undefined` if it does not exist. */
export async function readRecord(
	backend: StorageBackend,
	name: string,
	options: ReadOptions = {},
): Promise<StoredRecord | undefined> {
	const resource = await backend.lookup(recordId(name), options);
	return resource && recordOf(resource);
}

/** The contents of a stored record. */
export function recordOf(resource: Resource): StoredRecord {
	return { resource, record: decodeShared(ResourceShadow, resource).data.record };
}

/** A shadow, or `undefined` if it does not exist. */
export async function readShadow(
	backend: StorageBackend,
	name: string,
	options: ReadOptions = {},
): Promise<StoredShadow | undefined> {
	const resource = await backend.lookup(recordId(name), options);
	return resource && shadowOf(resource);
}

/** The shadow in a record, or `undefined` if it is a record of another kind. */
export function shadowOf(resource: Resource): StoredShadow | undefined {
	const { record } = recordOf(resource);
	return record.case === "shadow"
		? { name: resource.id?.name ?? "", resource, version: resource.version, shadow: record.value }
		: undefined;
}

/** The mutation that creates or replaces a record. */
export function putRecord(
	runtime: Runtime,
	name: string,
	stored: Resource | undefined,
	record: NonNullable<RecordInit>,
): Mutation {
	const data = create(ResourceShadowSchema, { record });
	if (stored !== undefined) {
		return {
			op: "put",
			resource: {
				...stored,
				generation: newUlid(runtime),
				data: encodeData(ResourceShadowSchema, data),
			},
			expectedVersion: stored.version,
		};
	}
	const id = { ...recordId(name), uid: newUlid(runtime) };
	const resource = resourceOf(ResourceShadow, { id, data });
	resource.generation = newUlid(runtime);
	return { op: "put", resource, expectedVersion: "" };
}
