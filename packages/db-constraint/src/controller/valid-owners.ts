import { Lifecycle, type MetaOwner } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Mutation, ReadOptions } from "@plinth/storage";
import { guardName } from "../commit/guards.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow, recordId } from "../shadow/shadow-records.ts";

type Context = Pick<ConstraintContext, "backend" | "environment" | "guards">;

/**
 * What a commit asserts that records owners as valid, if the shadow of the ownee has changed since the query. Meanwhile the
 * resource may have lost the reference, the owner may have been deleted, and a later write may have named it again. Its new
 * record looks like the one that was queried.
 *
 *     owner elsewhere:  read guard ── query ── commit, asserting the guard
 *     owner here:       query ── read the owner's shadow: ACTIVE, with this deployment ── commit, asserting that shadow
 *
 * Invariant: an owner that was valid is deleted only after its holder, this deployment, has said "no". To another
 * deployment, that "no" changes the guard. In this deployment, the deletion first changes the shadow of the owner, and then
 * sees all resources that were committed before. So it sees the record, or the commit fails. Other changes of the ownee's
 * shadow, however frequent, do not matter.
 *
 * @param valid - the owners as they are to be recorded.
 * @param guards - the guards of the owners, as they were read before the query.
 * @returns `undefined` if a verdict may be outdated. Then the owners must be queried again.
 */
export async function assertsOfValid(
	context: Context,
	owneeShadow: string,
	valid: readonly MetaOwner[],
	guards: readonly Mutation[],
	options: ReadOptions,
): Promise<readonly Mutation[] | undefined> {
	if (isPlanted("record a late verdict about an owner")) {
		return [];
	}
	const { self } = context.environment;
	const isHere = ({ deploymentUid }: MetaOwner) => deploymentUid === self.uid;
	const elsewhere = await assertsOfGuards(
		context,
		valid.filter((each) => !isHere(each)),
		guards,
		options,
	);
	const asserts = new Map(elsewhere?.map((each) => [nameOf(each), each]));
	for (const { owner, ownerUid } of valid.filter(isHere)) {
		const stored = owner && (await readShadow(context.backend, shadowName(owner), options));
		if (
			stored?.shadow.uid !== ownerUid ||
			stored.shadow.lifecycle !== Lifecycle.ACTIVE ||
			!stored.shadow.ownees.some(({ deployment }) => deployment?.uid === self.uid)
		) {
			return undefined;
		}
		const { name } = stored;
		// The commit replaces the shadow of the ownee anyway.
		if (name !== owneeShadow) {
			asserts.set(name, { op: "assert", id: recordId(name), expectedVersion: stored.version });
		}
	}
	return elsewhere && [...asserts.values()];
}

/**
 * What a commit asserts that records owners in other deployments as valid: none of the deployments that have said so was
 * dropped or taken over. A successor may not know that this deployment holds the owner, and may have deleted it.
 *
 * Owners that a restore has lost are not among these: they are held because a predecessor has said that they are valid.
 *
 * @param decidedBy - the uids of the deployments that have said so.
 * @returns `undefined` if one of them was. Then the owners must be queried again.
 */
export async function assertsOfDecided(
	{ dropped }: Pick<ConstraintContext, "dropped">,
	decidedBy: readonly string[],
	{ consistency }: ReadOptions,
): Promise<readonly Mutation[] | undefined> {
	if (isPlanted("believe a predecessor that an owner is valid")) {
		return [];
	}
	const asserts = new Map<string, Mutation>();
	for (const uid of new Set(decidedBy)) {
		if (consistency === "strong" ? await dropped.isRefusedNow(uid) : dropped.isRefused(uid)) {
			return undefined;
		}
		asserts.set(uid, dropped.notDropped(uid));
	}
	return [...asserts.values()];
}

/** The asserts of the guards of these owners. `undefined` if a strong read shows that one has changed. */
async function assertsOfGuards(
	context: Context,
	owners: readonly MetaOwner[],
	guards: readonly Mutation[],
	options: ReadOptions,
): Promise<readonly Mutation[] | undefined> {
	const targets = owners.flatMap(({ owner }) => owner ?? []);
	const names = new Set(targets.map(guardName));
	const needed = guards.filter((each) => names.has(nameOf(each)));
	if (options.consistency !== "strong") {
		return needed;
	}
	const now = await context.guards.asserts(targets, options);
	const versions = new Map(now.map((each) => [nameOf(each), each.expectedVersion]));
	return needed.every((each) => versions.get(nameOf(each)) === each.expectedVersion)
		? needed
		: undefined;
}

function nameOf(mutation: Mutation): string {
	return (mutation.op === "put" ? mutation.resource.id : mutation.id)?.name ?? "";
}
