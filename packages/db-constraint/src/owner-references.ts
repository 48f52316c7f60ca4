import { create } from "@bufbuild/protobuf";
import type { OwnerReference, Resource } from "@plinth/proto";
import {
	type MetaOwner,
	MetaOwnerSchema,
	type ResourceKey,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { keyOf } from "./resource-key.ts";
import { sameTarget } from "./shadow.ts";

/** The key of an owner; an empty region is the own one. */
export function ownerKey(owner: OwnerReference, ownRegion: string): ResourceKey {
	return keyOf(owner, owner.region || ownRegion);
}

/** What a shadow records of a resource's owners: what was known of those that it had stays. */
export function metaOwnersOf(
	resource: Resource,
	before: readonly MetaOwner[],
	ownRegion: string,
): MetaOwner[] {
	return resource.ownerReferences.map((reference) => {
		const owner = ownerKey(reference, ownRegion);
		const known = before.find(
			(each) =>
				each.ownerUid === reference.uid &&
				each.requiresOwnerReference === reference.requiresOwnerReference &&
				each.unsetOnDelete === reference.unsetOnDelete &&
				sameTarget(each.owner, owner),
		);
		return (
			known ??
			create(MetaOwnerSchema, {
				owner,
				ownerUid: reference.uid,
				requiresOwnerReference: reference.requiresOwnerReference,
				unsetOnDelete: reference.unsetOnDelete,
			})
		);
	});
}
