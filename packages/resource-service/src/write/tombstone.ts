import { create } from "@bufbuild/protobuf";
import { type Resource, TombstoneSchema } from "@plinth/proto";
import { idOf, newUlid, resourceOf, Tombstone, tenancyOf } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { Mutation } from "@plinth/storage";

/**
 * The mutations that delete a resource: the deletion itself, and the tombstone that the reaper watches for.
 * The deletion of a tombstone leaves no further tombstone.
 */
export function deletionWithTombstone(runtime: Runtime, resource: Resource): readonly Mutation[] {
	const { id } = resource;
	if (id === undefined) {
		throw new Error("stored resource without an id");
	}
	const deletion: Mutation = { op: "delete", id, expectedVersion: resource.version };
	if (id.type?.group === Tombstone.type.group && id.type.kind === Tombstone.type.kind) {
		return [deletion];
	}
	return [deletion, { op: "put", resource: tombstoneOf(runtime, resource), expectedVersion: "" }];
}

function tombstoneOf(runtime: Runtime, resource: Resource): Resource {
	const { id } = resource;
	const name = `tombstone-${id?.name.slice(0, 26)}-${id?.uid.toLowerCase()}`;
	const tombstone = resourceOf(Tombstone, {
		id: { ...idOf(Tombstone, name), uid: newUlid(runtime), tenancy: tenancyOf(id?.tenancy) },
		data: create(TombstoneSchema, { ...(id && { owner: id }) }),
	});
	tombstone.generation = newUlid(runtime);
	return tombstone;
}
