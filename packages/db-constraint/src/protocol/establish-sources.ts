import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type EstablishReferencesRequest_Target,
	type EstablishReferencesResponse_Established,
	EstablishReferencesResponse_EstablishedSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Deployed, Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Caller, idOf, isMarkedForDeletion, Namespace, Partition } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import type { Mutation } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { displayKey, type KeyLike, nameOfKey } from "../shadow/resource-key.ts";
import { mergeRules, newShadow, shadowName, sourceOf, withSource } from "../shadow/shadow.ts";
import { putRecord, ResourceShadow, shadowOf } from "../shadow/shadow-records.ts";
import { type DecideWithStored, decideTargets } from "./authorize-targets.ts";
import { targetIsBeingChecked } from "./establish-references.ts";

/** The maximum number of targets per commit. Each needs up to four mutations. */
const batchSize = 24;

/**
 * Puts a tentative source on the shadows of all targets. Always writes the shadows, so that the response to
 * an earlier holder query can't drop the source. If one of several commits fails, the earlier ones leave
 * tentative sources, which expire into holder queries.
 *
 * @param caller - the caller on whose behalf the deployment references. Default: the deployment itself, which
 *   may name all targets.
 * @throws ConnectError PermissionDenied if the caller may not name a target; FailedPrecondition if a target is
 *   missing or being deleted; Unavailable while a deletion of one is being checked, or if they changed during every attempt.
 */
export async function establishSources(
	context: ConstraintContext,
	from: Deployed,
	targets: readonly EstablishReferencesRequest_Target[],
	caller: Caller | undefined,
): Promise<EstablishReferencesResponse_Established[]> {
	const decide = decideTargets(caller, targets);
	const established: EstablishReferencesResponse_Established[] = [];
	for (let at = 0; at < targets.length; at += batchSize) {
		const some = targets.slice(at, at + batchSize);
		established.push(...(await establishSome(context, from, some, decide)));
	}
	return established;
}

async function establishSome(
	context: ConstraintContext,
	from: Deployed,
	targets: readonly EstablishReferencesRequest_Target[],
	decide: DecideWithStored,
): Promise<EstablishReferencesResponse_Established[]> {
	const { runtime, limits, establishments } = context;
	const names = targets.flatMap(({ key }) => (key === undefined ? [] : [shadowName(key)]));
	for (let left = limits.maxAttempts; left > 0; left--) {
		try {
			// Otherwise, of many that wait for one write to the disk, one would succeed, and the others try again.
			const established = await establishments.run(names, () =>
				tryToEstablish(context, from, targets, decide),
			);
			if (established !== undefined) {
				return established;
			}
			continue;
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
		await sleep(runtime.clock, (limits.maxRetryDelayMs / 20) * (0.5 + runtime.random.next()));
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
	targets: readonly EstablishReferencesRequest_Target[],
	decide: DecideWithStored,
): Promise<EstablishReferencesResponse_Established[] | undefined> {
	const { backend, runtime } = context;
	const mutations: Mutation[] = [];
	const absent: Mutation[] = [];
	const results: EstablishReferencesResponse_Established[] = [];
	const tenancies = new Map<string, Mutation>();
	for (const { key, rules } of targets) {
		if (key === undefined) {
			throw new ConnectError("target.key is required", Code.InvalidArgument);
		}
		const name = shadowName(key);
		const snapshot = await backend.list({
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: name,
		});
		const stored = snapshot.resources.map(shadowOf).find((each) => each?.name === name);
		const target =
			(await backend.lookup(nameOfKey(key))) ??
			(await backend.lookup(nameOfKey(key), { consistency: "strong" }));
		if (target !== undefined) {
			decide(key, target);
		}
		if (stored?.shadow.lifecycle === Lifecycle.CHECKING) {
			throw new ConnectError(`${displayKey(key)}: ${targetIsBeingChecked}`, Code.Unavailable);
		}
		if (target?.id === undefined) {
			throw new ConnectError(`${displayKey(key)} does not exist`, Code.FailedPrecondition);
		}
		if (stored?.shadow.lifecycle === Lifecycle.DELETING || isMarkedForDeletion(target)) {
			throw new ConnectError(`${displayKey(key)} is being deleted`, Code.FailedPrecondition);
		}
		const { uid } = target.id;
		const exists: Mutation = { op: "assert", id: target.id, uid };
		if (stored === undefined) {
			absent.push(
				exists,
				putRecord(runtime, name, undefined, { case: "shadow", value: newShadow(key, uid) }),
			);
			continue;
		}
		const { shadow, resource } = stored;
		const before = sourceOf(shadow, from.uid);
		const establishment = BigInt(snapshot.version || "0") + 1n;
		const next = withSource(shadow, {
			deployment: from,
			rules: mergeRules(before?.rules ?? [], rules),
			tentative: before?.tentative ?? true,
			establishment,
			since: before?.since ?? establishment,
		});
		mutations.push(exists, putRecord(runtime, name, resource, { case: "shadow", value: next }));
		for (const [unit, mutation] of await tenancyAsserts(context, key)) {
			tenancies.set(unit, mutation);
		}
		results.push(create(EstablishReferencesResponse_EstablishedSchema, { uid, establishment }));
	}
	if (absent.length > 0) {
		await backend.commit(absent);
		return undefined;
	}
	await backend.commit([...mutations, ...tenancies.values()]);
	return results;
}

/** Asserts that fail the commit if the target's namespace or partition is marked concurrently. */
async function tenancyAsserts(
	{ backend }: ConstraintContext,
	key: KeyLike,
): Promise<readonly (readonly [string, Mutation])[]> {
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
			throw new ConnectError(
				`${displayKey(key)} is in a tenancy that is being deleted`,
				Code.FailedPrecondition,
			);
		}
		asserts.push([
			`${stored.id.type?.kind} ${stored.id.name}`,
			{ op: "assert", id: stored.id, expectedVersion: stored.version },
		]);
	}
	return asserts;
}
