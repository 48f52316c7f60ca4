import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	type EstablishReferencesRequest_Target,
	type EstablishReferencesResponse_Established,
	EstablishReferencesResponse_EstablishedSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type Deployed,
	Lifecycle,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Caller, idOf, isMarkedForDeletion, Namespace, Partition } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import type { Mutation } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { schemaForEstablishments } from "../schema/descriptor-record.ts";
import { recordsTypes } from "../schema/followers.ts";
import { displayKey, type KeyLike, nameOfKey } from "../shadow/resource-key.ts";
import { mergeRules, newShadow, shadowName, sourceOf, withSource } from "../shadow/shadow.ts";
import {
	putRecord,
	ResourceShadow,
	type StoredShadow,
	shadowOf,
} from "../shadow/shadow-records.ts";
import { type DecideWithStored, decideTargets } from "./authorize-targets.ts";
import { targetIsBeingChecked, targetIsMissing } from "./establish-references.ts";
import { assertServed, typesOf } from "./served-versions.ts";

/** The maximum number of targets per commit. Each needs up to four mutations. */
const batchSize = 24;

/**
 * Puts a tentative source on the shadows of all targets. Always writes the shadows, so that the response to
 * an earlier holder query can't drop the source. If one of several commits fails, the earlier ones leave
 * tentative sources, which expire into holder queries.
 *
 * A reference that exists already, and is established again because its deployment or that of the target has a
 * successor, gets its source whatever the state of the target that it holds: in a namespace that is being deleted, and in
 * DELETING too. The shadow may lack the source, because a restore has undone that, or has undone the release that dropped
 * it. In DELETING the deletion then waits for one more holder, which applies its rules. Nothing else can add a source
 * there, so it still ends.
 *
 * @param caller - the caller on whose behalf the deployment references. Default: the deployment itself, which
 *   may name all targets.
 * @param options - `isOfUser`: whether a user references the targets, so that their versions must be served; `schema`: the
 *   number of the schema of the deployment; `signal`: aborts when the caller has gone. Then nothing more is begun, and what
 *   waits for its turn leaves the queue: the caller repeats the call, and would wait behind its own earlier ones. A commit
 *   in progress is completed. Default: never.
 * @throws The reason of the signal if that aborts before everything is established.
 * @throws Refused FailedPrecondition if a user names a target in a version that is not served.
 * @throws ConnectError PermissionDenied if the caller may not name a target; FailedPrecondition if a target is
 *   missing, or being deleted and not held; Unavailable if the deployment was deleted, while a deletion of one is being
 *   checked, or if they changed during every attempt; InvalidArgument if a user is named as the caller for a held target.
 */
export async function establishSources(
	context: ConstraintContext,
	from: Deployed,
	targets: readonly EstablishReferencesRequest_Target[],
	caller: Caller | undefined,
	{ isOfUser, schema, signal }: Omit<Establishment, "targets"> = notOfUser,
): Promise<EstablishReferencesResponse_Established[]> {
	if (caller !== undefined && targets.some(({ heldUid }) => heldUid !== "")) {
		throw new ConnectError(
			"target.held_uid is only for what deployments establish by themselves",
			Code.InvalidArgument,
		);
	}
	const decide = decideTargets(caller, targets);
	const established: EstablishReferencesResponse_Established[] = [];
	for (let at = 0; at < targets.length; at += batchSize) {
		const some = { targets: targets.slice(at, at + batchSize), isOfUser, schema, signal };
		established.push(...(await establishSome(context, from, some, decide)));
	}
	return established;
}

/** Some targets of a request. */
interface Establishment {
	readonly targets: readonly EstablishReferencesRequest_Target[];
	readonly isOfUser: boolean;
	/** The number of the schema of the deployment that references them; 0 if it is not known. */
	readonly schema: bigint;
	/** Aborts when the caller has gone. */
	readonly signal?: AbortSignal | undefined;
}

const notOfUser = { isOfUser: false, schema: 0n } as const;

async function establishSome(
	context: ConstraintContext,
	from: Deployed,
	some: Establishment,
	decide: DecideWithStored,
): Promise<EstablishReferencesResponse_Established[]> {
	const { runtime, limits, establishments } = context;
	const { signal } = some;
	const names = some.targets.flatMap(({ key }) => (key === undefined ? [] : [shadowName(key)]));
	for (let left = limits.maxAttempts; left > 0; left--) {
		try {
			// Otherwise, of many that wait for one write to the disk, one would succeed, and the others try again.
			const established = await establishments.run(
				names,
				() => tryToEstablish(context, from, some, decide),
				signal,
			);
			if (established !== undefined) {
				return established;
			}
			continue;
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
			await context.dropped.assertNotDroppedNow(from.uid);
		}
		const delayMs = (limits.maxRetryDelayMs / 20) * (0.5 + runtime.random.next());
		await sleep(runtime.clock, delayMs, signal);
	}
	throw new ConnectError(
		"the targets changed during every attempt: retry the request",
		Code.Unavailable,
	);
}

/**
 * Commits the sources, or first empty shadows for the targets that have none: then it returns `undefined`, and is to be
 * called again.
 *
 * The number of an establishment is that of the snapshot which has the shadow, plus one. It is greater than all numbers
 * of the target before, also on a server that lags: the commit replaces exactly that shadow, so earlier establishments
 * were committed before the shadow was, from snapshots that are older still. A commit that creates the shadow could not
 * tell whether others have come and gone since its snapshot: so those have no source.
 */
async function tryToEstablish(
	context: ConstraintContext,
	from: Deployed,
	some: Establishment,
	decide: DecideWithStored,
): Promise<EstablishReferencesResponse_Established[] | undefined> {
	const { backend, runtime } = context;
	const isActive = await assertServedNow(context, some);
	const { targets } = some;
	const mutations: Mutation[] = [];
	const absent: Mutation[] = [];
	const results: EstablishReferencesResponse_Established[] = [];
	const tenancies = new Map<string, Mutation>();
	for (const each of targets) {
		const { rules, heldUid } = each;
		const { key, id, stored, shadow, establishment } = await readToEstablish(context, each, decide);
		const { uid } = id;
		const name = shadowName(key);
		const exists: Mutation = { op: "assert", id, uid };
		if (stored === undefined && !isPlanted("put a source on a new shadow")) {
			absent.push(exists, putRecord(runtime, name, undefined, { case: "shadow", value: shadow }));
			continue;
		}
		const before = sourceOf(shadow, from.uid);
		const next = withSource(shadow, {
			deployment: from,
			rules: mergeRules(before?.rules ?? [], rules),
			tentative: before?.tentative ?? true,
			establishment,
			since: before?.since ?? establishment,
		});
		mutations.push(exists);
		mutations.push(putRecord(runtime, name, stored?.resource, { case: "shadow", value: next }));
		for (const [unit, mutation] of await tenancyAsserts(context, key, uid, heldUid)) {
			tenancies.set(unit, mutation);
		}
		results.push(create(EstablishReferencesResponse_EstablishedSchema, { uid, establishment }));
	}
	if (absent.length > 0) {
		await backend.commit(absent);
		return undefined;
	}
	await backend.commit([
		...mutations,
		...tenancies.values(),
		context.dropped.notDropped(from.uid),
		isActive,
		...(isPlanted("establish without recording the types")
			? []
			: [await recordsTypes(context, from, { types: typesOf(targets), schema: some.schema })]),
	]);
	return results;
}

/** What an establishment is about. */
interface ToEstablish {
	readonly key: KeyLike;
	/** That of the target, with its uid. */
	readonly id: ID;
	readonly stored: StoredShadow | undefined;
	/** The stored shadow, DELETING if its target is being deleted; an empty one if there is none. */
	readonly shadow: Shadow;
	/** The number of the establishment. */
	readonly establishment: bigint;
}

/** Reads a target and its shadow. @throws ConnectError if nothing may be established with it: see `establishSources`. */
async function readToEstablish(
	context: ConstraintContext,
	{ key, heldUid }: EstablishReferencesRequest_Target,
	decide: DecideWithStored,
): Promise<ToEstablish> {
	if (key === undefined) {
		throw new ConnectError("target.key is required", Code.InvalidArgument);
	}
	const name = shadowName(key);
	const snapshot = await context.backend.list({
		type: ResourceShadow.type,
		tenancy: { partition: "", namespace: "" },
		namePrefix: name,
	});
	const stored = snapshot.resources.map(shadowOf).find((each) => each?.name === name);
	const target = await readTarget(context, key, heldUid);
	if (target !== undefined) {
		decide(key, target);
	}
	if (stored?.shadow.lifecycle === Lifecycle.CHECKING) {
		throw new ConnectError(`${displayKey(key)}: ${targetIsBeingChecked}`, Code.Unavailable);
	}
	if (target?.id === undefined) {
		throw new ConnectError(`${displayKey(key)} ${targetIsMissing}`, Code.FailedPrecondition);
	}
	const { id } = target;
	const isCopy = target.origin !== undefined && !isPlanted("establish references to copies");
	if (isCopy && heldUid !== id.uid) {
		// Its removal would wait for other deployments.
		const problem =
			"is a copy of a resource of another cluster: only its own deployment can reference it";
		throw refusal(key, heldUid, problem);
	}
	const isDeleting = isBeingDeleted(target, stored?.shadow);
	if (isDeleting && heldUid !== id.uid) {
		throw refusal(key, heldUid, "is being deleted");
	}
	const establishment = BigInt(snapshot.version || "0") + 1n;
	const before = stored?.shadow ?? newShadow(key, id.uid);
	const lifecycle = isDeleting ? Lifecycle.DELETING : before.lifecycle;
	const shadow = stored === undefined ? before : { ...before, lifecycle };
	return { key, id, stored, shadow, establishment };
}

/** Fails the commit once another schema is active, which may not serve the targets of a user as this one does. */
async function assertServedNow(
	context: ConstraintContext,
	{ targets, isOfUser }: Establishment,
): Promise<Mutation> {
	const { servedTypes, isActive } = await schemaForEstablishments(context);
	if (isOfUser && !isPlanted("establish by versions that are not served")) {
		assertServed(context, servedTypes, targets);
	}
	return isActive;
}

/** Whether the target is irrevocably being deleted, also if its storage is older than its shadow. */
function isBeingDeleted(target: Resource, shadow: Shadow | undefined): boolean {
	return shadow?.lifecycle === Lifecycle.DELETING || isMarkedForDeletion(target);
}

/** The target; from a strong read if it seems to be missing, or to be another incarnation than the one that is held. */
async function readTarget(
	{ backend }: ConstraintContext,
	key: KeyLike,
	heldUid: string,
): Promise<Resource | undefined> {
	const target = await backend.lookup(nameOfKey(key));
	return target !== undefined && (heldUid === "" || target.id?.uid === heldUid)
		? target
		: backend.lookup(nameOfKey(key), { consistency: "strong" });
}

/** Asserts that fail the commit if the target's namespace or partition is marked concurrently; none if it is held. */
async function tenancyAsserts(
	{ backend }: ConstraintContext,
	key: KeyLike,
	uid: string,
	heldUid: string,
): Promise<readonly (readonly [string, Mutation])[]> {
	if (uid === heldUid) {
		return [];
	}
	const asserts: (readonly [string, Mutation])[] = [];
	for (const id of [
		key.partition && idOf(Partition, key.partition),
		key.namespace && idOf(Namespace, key.namespace, { partition: key.partition }),
	]) {
		const stored = id ? await backend.lookup(id) : undefined;
		if (stored?.id === undefined) {
			continue;
		}
		if (isMarkedForDeletion(stored)) {
			throw refusal(key, heldUid, "is in a tenancy that is being deleted");
		}
		asserts.push([
			`${stored.id.type?.kind} ${stored.id.name}`,
			{ op: "assert", id: stored.id, expectedVersion: stored.version },
		]);
	}
	return asserts;
}

/** The refusal of a target; if another incarnation of it is held, that also says that this one is gone. */
function refusal(key: KeyLike, heldUid: string, problem: string): ConnectError {
	const held = heldUid === "" ? "" : `, and the incarnation ${heldUid} of it ${targetIsMissing}`;
	return new ConnectError(`${displayKey(key)} ${problem}${held}`, Code.FailedPrecondition);
}
