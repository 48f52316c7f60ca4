import { create } from "@bufbuild/protobuf";
import {
	type CheckMetaOwnersRequest_Ownership,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type Deployed,
	Lifecycle,
	OwneesSchema,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { hasNamespace, hasPartition, isMarkedForDeletion } from "@plinth/resource";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { type KeyLike, nameOfKey } from "./resource-key.ts";
import { newShadow, sameTarget, shadowName } from "./shadow.ts";
import { lookup, putRecord, readShadow } from "./shadow-records.ts";

/**
 * Whether a resource of this deployment owns one of the caller's. Valid is said only in the commit
 * that records the caller's deployment in the owner's shadow; not valid only where it is certain, by a
 * strong read; whatever lies between is not known, and nothing follows from it.
 */
export async function checkOwnership(
	context: ConstraintContext,
	from: Deployed,
	ownership: CheckMetaOwnersRequest_Ownership,
): Promise<Verdict> {
	const { owner, ownerUid, requiresOwnerReference } = ownership;
	if (owner === undefined || context.descriptor.serviceOfGroup(owner.group) !== "") {
		return Verdict.UNSPECIFIED;
	}
	const type = context.descriptor.typeOf(owner);
	const isNamed =
		type !== undefined &&
		ownerUid !== "" &&
		hasPartition(type.scope) === (owner.partition !== "") &&
		hasNamespace(type.scope) === (owner.namespace !== "");
	if (!isNamed) {
		return Verdict.UNSPECIFIED;
	}
	if (requiresOwnerReference && !(await references(context, ownership))) {
		return Verdict.NOT_VALID;
	}
	const { backend, runtime } = context;
	const resource = await lookup(backend, nameOfKey(owner), { consistency: "strong" });
	if (resource?.id === undefined || resource.id.uid !== ownerUid || isMarkedForDeletion(resource)) {
		return Verdict.NOT_VALID;
	}
	const name = shadowName(owner);
	const stored = await readShadow(backend, name, { consistency: "strong" });
	if (stored?.shadow.lifecycle === Lifecycle.DELETING) {
		return Verdict.NOT_VALID;
	}
	if (stored?.shadow.lifecycle === Lifecycle.CHECKING) {
		return Verdict.UNSPECIFIED;
	}
	const shadow = stored?.shadow ?? newShadow(owner, ownerUid);
	const next = withOwnees(shadow, from, requiresOwnerReference);
	try {
		await backend.commit([
			{ op: "assert", id: resource.id, expectedVersion: resource.version },
			putRecord(runtime, name, stored?.resource, { case: "shadow", value: next }),
		]);
		return Verdict.VALID;
	} catch (failure) {
		if (isConflict(failure)) {
			return Verdict.UNSPECIFIED;
		}
		throw failure;
	}
}

function withOwnees(shadow: Shadow, deployment: Deployed, requires: boolean): Shadow {
	const before = shadow.ownees.find((each) => each.deployment?.uid === deployment.uid);
	const ownees = create(OwneesSchema, {
		deployment,
		requireReference: requires || (before?.requireReference ?? false),
	});
	return { ...shadow, ownees: [...shadow.ownees.filter((each) => each !== before), ownees] };
}

/** Whether the owner references the ownee; a "no" is final, as `finalAnswers` are. */
async function references(
	context: ConstraintContext,
	{ owner, ownerUid, ownee }: CheckMetaOwnersRequest_Ownership,
): Promise<boolean> {
	if (owner === undefined || ownee === undefined) {
		return false;
	}
	if (hasReference(context, owner, ownerUid, ownee)) {
		return true;
	}
	const version = await context.guards.change(ownee);
	await context.index.reachedWithin(version, context.limits.callMs);
	return hasReference(context, owner, ownerUid, ownee);
}

function hasReference(
	{ index }: ConstraintContext,
	owner: KeyLike,
	ownerUid: string,
	ownee: KeyLike,
): boolean {
	const shadow = index.get(shadowName(owner))?.shadow;
	return (
		shadow?.uid === ownerUid && shadow.outgoing.some(({ target }) => sameTarget(target, ownee))
	);
}
