import { create } from "@bufbuild/protobuf";
import type { OwnerReference, Resource } from "@plinth/proto";
import {
	type MetaOwner,
	MetaOwnerSchema,
	type ResourceKey,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { defaultUnit, hasNamespace, hasPartition } from "@plinth/resource";
import type { ConstraintContext } from "./constraint-context.ts";
import { keyOf } from "./resource-key.ts";
import type { ServiceDescriptor } from "./service-descriptor.ts";
import { sameTarget } from "./shadow.ts";

/**
 * The key of an owner. An empty region is the own one; empty units of tenancy are the defaults, where the
 * owner's type is known.
 */
export function ownerKey(
	{ type, tenancy, name, region }: OwnerReference,
	ownRegion: string,
	descriptor?: Pick<ServiceDescriptor, "typeOf">,
): ResourceKey {
	const known = type && descriptor?.typeOf(type);
	const { partition = "", namespace = "" } = tenancy ?? {};
	const inPartition = known !== undefined && hasPartition(known.scope);
	const inNamespace = known !== undefined && hasNamespace(known.scope);
	return keyOf(
		{
			...(type && { type }),
			tenancy: {
				partition: partition || (inPartition ? defaultUnit : ""),
				namespace: namespace || (inNamespace ? defaultUnit : ""),
			},
			name,
		},
		region || ownRegion,
	);
}

/** What a shadow records of a resource's owners: what was known of those that it had stays. */
export function metaOwnersOf(
	{ descriptor, environment }: Pick<ConstraintContext, "descriptor" | "environment">,
	resource: Resource,
	before: readonly MetaOwner[],
): MetaOwner[] {
	return resource.ownerReferences.map((reference) => {
		const owner = ownerKey(reference, environment.self.region, descriptor);
		const version = reference.type?.groupVersion ?? "";
		const known = before.find(
			(each) =>
				each.ownerUid === reference.uid &&
				each.requiresOwnerReference === reference.requiresOwnerReference &&
				each.unsetOnDelete === reference.unsetOnDelete &&
				sameTarget(each.owner, owner),
		);
		if (known !== undefined) {
			return known.version === version ? known : { ...known, version };
		}
		return create(MetaOwnerSchema, {
			owner,
			version,
			ownerUid: reference.uid,
			requiresOwnerReference: reference.requiresOwnerReference,
			unsetOnDelete: reference.unsetOnDelete,
		});
	});
}
