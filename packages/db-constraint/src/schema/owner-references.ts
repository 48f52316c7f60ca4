import { create } from "@bufbuild/protobuf";
import type { OwnerReference, Resource } from "@plinth/proto";
import {
	type MetaOwner,
	MetaOwnerSchema,
	type ResourceKey,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { defaultTenancyUnit, hasNamespace, hasPartition } from "@plinth/resource";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { keyOf, keyString } from "../shadow/resource-key.ts";
import { sameTarget } from "../shadow/shadow.ts";
import { compareApiVersions } from "./api-versions.ts";

type Context = Pick<ConstraintContext, "descriptor" | "environment">;

/**
 * The key of an owner. An empty region is the own one. An empty partition or namespace is the default one if
 * the owner's type is known, or if it is recorded with that: a release that does not register the type any longer must
 * find the same owner.
 *
 * @param recorded - the owners that the shadow of the resource has.
 */
export function ownerKey(
	{ descriptor, environment }: Context,
	{ type, tenancy, name, region, uid }: OwnerReference,
	recorded: readonly MetaOwner[],
): ResourceKey {
	const known = type && descriptor.typeOf(type);
	const { partition = "", namespace = "" } = tenancy ?? {};
	const inPartition = known !== undefined && hasPartition(known.scope);
	const inNamespace = known !== undefined && hasNamespace(known.scope);
	const key = keyOf(
		{
			...(type && { type }),
			tenancy: {
				partition: partition || (inPartition ? defaultTenancyUnit : ""),
				namespace: namespace || (inNamespace ? defaultTenancyUnit : ""),
			},
			name,
		},
		region || environment.self.region,
	);
	if (known !== undefined || isPlanted("fill in the tenancy of an owner by its type alone")) {
		return key;
	}
	const same = recorded.find(({ owner, ownerUid }) => ownerUid === uid && isFilledIn(owner, key));
	return same?.owner ?? key;
}

/** Whether a key is another one, of which an empty partition or namespace may be the default one. */
function isFilledIn(filled: ResourceKey | undefined, key: ResourceKey): boolean {
	const { partition = "", namespace = "" } = filled ?? {};
	const fits = (unit: string, empty: string) =>
		unit === empty || (unit === defaultTenancyUnit && empty === "");
	return (
		fits(partition, key.partition) &&
		fits(namespace, key.namespace) &&
		sameTarget(filled, { ...key, partition, namespace })
	);
}

/**
 * The records of a resource's owners for its shadow. The state of owners that it had before is kept. Several
 * references to one incarnation become one record, with the most lenient flags and the oldest version.
 */
export function metaOwnersOf(
	context: Context,
	resource: Resource,
	before: readonly MetaOwner[],
): MetaOwner[] {
	const owners = new Map<string, MetaOwner>();
	for (const reference of resource.ownerReferences) {
		const owner = ownerKey(context, reference, before);
		const { uid: ownerUid, requiresOwnerReference, unsetOnDelete } = reference;
		const version = reference.type?.groupVersion ?? "";
		const text = `${ownerUid} ${keyString(owner)}`;
		const other = owners.get(text);
		if (other === undefined) {
			const init = { owner, ownerUid, requiresOwnerReference, unsetOnDelete, version };
			owners.set(text, create(MetaOwnerSchema, init));
		} else {
			other.requiresOwnerReference &&= requiresOwnerReference;
			other.unsetOnDelete ||= unsetOnDelete;
			other.version = compareApiVersions(version, other.version) < 0 ? version : other.version;
		}
	}
	return [...owners.values()].map((owner) => withKnownState(owner, before));
}

/**
 * Verdicts about a reference with other flags don't count: the owner is queried again. The deployment that has said that it
 * is valid still decides, and what a restore has lost is still held.
 */
function withKnownState(owner: MetaOwner, before: readonly MetaOwner[]): MetaOwner {
	const same = before.filter((each) => sameOwner(each, owner));
	const known = same.find(
		(each) =>
			each.requiresOwnerReference === owner.requiresOwnerReference &&
			each.unsetOnDelete === owner.unsetOnDelete,
	);
	const { version } = owner;
	if (known !== undefined) {
		return known.version === version ? known : { ...known, version };
	}
	const valid = same.find((each) => each.notValidAnswers === 0 && each.deploymentUid !== "");
	if (valid === undefined || isPlanted("forget the deployment of an owner when a flag changes")) {
		return owner;
	}
	const { deploymentUid, missing } = valid;
	return { ...owner, deploymentUid, ...(missing && { missing }) };
}

/** Whether two records name the same incarnation. */
export function sameOwner(a: MetaOwner, b: MetaOwner): boolean {
	return a.ownerUid === b.ownerUid && sameTarget(a.owner, b.owner);
}
