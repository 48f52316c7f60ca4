import { create } from "@bufbuild/protobuf";
import {
	type CheckMetaOwnersRequest_Ownership as Ownership,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type Deployed,
	Lifecycle,
	OwneesSchema,
	type ResourceKey,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { hasNamespace, hasPartition, isMarkedForDeletion } from "@plinth/resource";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { isSchemaComplete } from "../schema/descriptor-record.ts";
import { type KeyLike, keyString, nameOfKey } from "../shadow/resource-key.ts";
import { newShadow, sameTarget, shadowName } from "../shadow/shadow.ts";
import { putRecord, readShadow } from "../shadow/shadow-records.ts";

/**
 * Checks whether resources of this deployment own resources of the caller's, in the order of the request.
 * An ownership is reported valid only by the commit that records the caller's deployment in the owner's shadow
 * (one commit for all ownerships of an owner), and not valid only if a strong read is certain of it.
 * Anything else is reported as not known, and changes nothing.
 */
export async function checkOwnerships(
	context: ConstraintContext,
	from: Deployed,
	ownerships: readonly Ownership[],
): Promise<Verdict[]> {
	const verdicts = new Map<Ownership, Verdict>();
	const byOwner = Map.groupBy(
		ownerships,
		({ owner, ownerUid }) => `${ownerUid} ${owner && keyString(owner)}`,
	);
	await Promise.all(
		[...byOwner.values()].map(async (same) => {
			try {
				await checkOwner(context, from, same, verdicts);
			} catch (err) {
				// Must not fail the other owners of the request.
				context.logger.debug({ err }, "an owner could not be checked");
			}
		}),
	);
	return ownerships.map((each) => verdicts.get(each) ?? Verdict.UNSPECIFIED);
}

/** Checks the ownerships of one owner. */
async function checkOwner(
	context: ConstraintContext,
	from: Deployed,
	ownerships: readonly Ownership[],
	verdicts: Map<Ownership, Verdict>,
): Promise<void> {
	const { owner, ownerUid } = ownerships[0] ?? {};
	if (owner === undefined || !ownerUid || !isOwn(context, owner)) {
		return;
	}
	await Promise.all(
		ownerships.map(async (each) => {
			const isReferenced = each.requiresOwnerReference ? await references(context, each) : true;
			if (isReferenced !== true) {
				verdicts.set(each, isReferenced === undefined ? Verdict.UNSPECIFIED : Verdict.NOT_VALID);
			}
		}),
	);
	// Of which it is not known yet whether the owner references them, too: it is not deleted before their deployment has said "no".
	const left = ownerships.filter((each) =>
		isPlanted("record no holder before its owner is judged")
			? !verdicts.has(each)
			: verdicts.get(each) !== Verdict.NOT_VALID,
	);
	if (left.length > 0) {
		const requires = left.some(({ requiresOwnerReference }) => requiresOwnerReference);
		const verdict = await record(context, from, owner, ownerUid, requires);
		for (const each of left) {
			if (!verdicts.has(each) || verdict === Verdict.NOT_VALID) {
				verdicts.set(each, verdict);
			}
		}
	}
}

/** Whether the key is the full name of a resource of this service, of a known type. */
function isOwn({ descriptor }: ConstraintContext, owner: ResourceKey): boolean {
	const type = descriptor.typeOf(owner);
	return (
		descriptor.serviceOfGroup(owner.group) === "" &&
		type !== undefined &&
		hasPartition(type.scope) === (owner.partition !== "") &&
		hasNamespace(type.scope) === (owner.namespace !== "")
	);
}

/** Records in the owner's shadow that the caller's deployment, which was not dropped, stores ownees of it. */
async function record(
	{ backend, dropped, runtime }: ConstraintContext,
	from: Deployed,
	owner: ResourceKey,
	ownerUid: string,
	requires: boolean,
): Promise<Verdict> {
	const resource = await backend.lookup(nameOfKey(owner), { consistency: "strong" });
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
	const next = withOwnees(shadow, from, requires);
	try {
		await backend.commit([
			{ op: "assert", id: resource.id, expectedVersion: resource.version },
			putRecord(runtime, name, stored?.resource, { case: "shadow", value: next }),
			...(isPlanted("record a holder that was dropped") ? [] : [dropped.notDropped(from.uid)]),
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

/**
 * Whether the owner references the ownee; `undefined` if that is not known: while the active schema is not complete, the owner
 * may have references that are not derived yet. A "no" is final, like `finalDecisions`.
 */
async function references(
	context: ConstraintContext,
	{ owner, ownerUid, ownee }: Ownership,
): Promise<boolean | undefined> {
	if (owner === undefined || ownee === undefined) {
		return false;
	}
	if (hasReference(context, owner, ownerUid, ownee)) {
		return true;
	}
	// Before the index is read: what is derived until then is seen.
	const isComplete =
		(await isSchemaComplete(context)) || isPlanted("judge owners by an incomplete schema");
	const version = await context.guards.change(ownee);
	await context.index.reachedWithin(version, context.limits.callTimeoutMs);
	return hasReference(context, owner, ownerUid, ownee) || (isComplete ? false : undefined);
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
