import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import type { ReferencedTypes } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type Deployed,
	type Follower,
	FollowerSchema,
	type FollowersRecord,
	FollowersRecordSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Exhausted, type Mutation, type ReadOptions } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { putRecord, readRecord, recordId } from "../shadow/shadow-records.ts";

/**
 * The name of the record of the deployments that reference resources of this one, and of the types by which they do.
 *
 * A follower is in it from its first establishment on, whose commit asserts the record, and names all its types whenever
 * it begins to watch deletions. A schema that no longer serves some type becomes active by a commit that asserts the
 * record too: so none of its followers is missed, and an establishment that comes later finds the schema changed.
 *
 * Invariant: the number of a follower is the greatest one of which anything was recorded, also if that changed no types, but
 * for those that found no room. So a follower that references nothing any longer stays in the record until its deployment
 * is deleted or taken over.
 */
const followersRecord = "followers";

/** The followers, and the record as it was read. */
interface StoredFollowers {
	readonly resource: Resource | undefined;
	readonly followers: readonly Follower[];
}

type Context = Pick<ConstraintContext, "backend" | "runtime" | "environment" | "dropped">;

/** The followers, from the storage. */
export async function readFollowers(
	{ backend }: Pick<ConstraintContext, "backend">,
	options: ReadOptions = {},
): Promise<StoredFollowers> {
	const stored = await readRecord(backend, followersRecord, options);
	const followers = stored?.record.case === "followers" ? stored.record.value.followers : [];
	return { resource: stored?.resource, followers };
}

/** Fails a commit if the followers have changed since they were read. */
export function followersAsBefore({ resource }: StoredFollowers): Mutation {
	return { op: "assert", id: recordId(followersRecord), expectedVersion: resource?.version ?? "" };
}

/** The mutation of an establishment, with which the follower is recorded to reference these types. */
export async function recordsTypes(
	context: Context,
	from: Deployed,
	{ types, schema }: { readonly types: readonly string[]; readonly schema: bigint },
): Promise<Mutation> {
	const stored = await readFollowers(context);
	const before = stored.followers.find(({ deployment }) => deployment?.uid === from.uid);
	const all = [...new Set([...(before?.types ?? []), ...types])].sort();
	const addsNone = all.length === (before?.types.length ?? 0);
	if (addsNone && (before === undefined || isCurrent(before, schema))) {
		return followersAsBefore(stored);
	}
	const latest = before !== undefined && before.schema > schema ? before.schema : schema;
	return putFollower(context, stored, from, { types: all, schema: latest });
}

/**
 * Records all types that a follower references, instead of those that it has referenced before. What an earlier schema of
 * it has sent, and arrives late, changes nothing. If only the number is new, and the storage has no room for that, the
 * record stays as it is: a follower must not miss deletions because of it.
 *
 * @throws StorageError if the storage can't be read or written.
 */
export async function recordFollower(
	context: Context,
	from: Deployed,
	{ types, schema }: Pick<ReferencedTypes, "types" | "schema">,
): Promise<void> {
	const all = [...new Set(types)].sort();
	for (let consistency: ReadOptions = {}; ; consistency = { consistency: "strong" }) {
		const stored = await readFollowers(context, consistency);
		const before = stored.followers.find(({ deployment }) => deployment?.uid === from.uid);
		const isOutdated = before !== undefined && before.schema > schema;
		const isLate = isOutdated && !isPlanted("take the types of an earlier schema of a follower");
		const isSame = (before?.types ?? []).join() === all.join();
		if (isLate || (isSame && (before === undefined || isCurrent(before, schema)))) {
			return;
		}
		try {
			await context.backend.commit([putFollower(context, stored, from, { types: all, schema })]);
			return;
		} catch (failure) {
			const isOnlyNumber = isSame && failure instanceof Exhausted;
			const mayBeLeft = isOnlyNumber && !isPlanted("refuse a watch whose number finds no room");
			if (mayBeLeft && consistency.consistency === "strong") {
				return;
			}
			// The first read may be of a server that lags.
			if (!mayBeLeft && !isConflict(failure)) {
				throw failure;
			}
		}
	}
}

/** Whether what is recorded of a follower is of this schema or a later one. */
function isCurrent(before: Follower, schema: bigint): boolean {
	if (isPlanted("ignore later schemas of a follower that name the same types")) {
		return true;
	}
	return before.schema >= schema;
}

/** Puts a follower with its types. Those that are permanently refused are removed. */
function putFollower(
	{ runtime, environment, dropped }: Context,
	{ resource, followers }: StoredFollowers,
	deployment: Deployed,
	{ types, schema }: Pick<Follower, "schema"> & { readonly types: string[] },
): Mutation {
	const others = followers.filter(({ deployment: other }) => {
		const uid = other?.uid ?? "";
		const isTakenOver = (environment.successorOf(uid)?.uid ?? uid) !== uid;
		return uid !== deployment.uid && !isTakenOver && !dropped.has(uid);
	});
	const own =
		isPlanted("forget the number of a follower that references nothing") && types.length === 0
			? []
			: [create(FollowerSchema, { deployment, types, schema })];
	const value: FollowersRecord = create(FollowersRecordSchema, { followers: [...others, ...own] });
	return putRecord(runtime, followersRecord, resource, { case: "followers", value });
}
