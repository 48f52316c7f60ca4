import { toBinary } from "@bufbuild/protobuf";
import { type ID, ResourceSchema } from "@plinth/proto";
import type { Fence } from "@plinth/runtime";
import {
	type CommitOptions,
	type CommitResult,
	deploymentWriter,
	type Mutation,
} from "@plinth/storage";
import type { Keys } from "../keys.ts";

/** A commit that has not settled. */
export interface PendingCommit {
	readonly mutations: readonly Mutation[];
	/** Per mutation, the key in etcd. */
	readonly keys: readonly string[];
	/** Per put, the serialized resource without a version. */
	readonly bodies: readonly Uint8Array[];
	/** Its approximate size in a request, in bytes. */
	readonly bytes: number;
	readonly fence: Fence | undefined;
	readonly writtenBy: string;
	/** When it began to wait, on the monotonic clock. */
	readonly sinceMs: number;
	/** Whether the state has caught up with etcd since the call: then a decision against it is final. */
	fresh: boolean;
	/** Whether it needs its own transaction, because a shared one was refused. */
	alone: boolean;
	/** Whether it has settled. */
	readonly settled: boolean;
	/** Settles with the result. */
	readonly result: Promise<CommitResult>;
	/** Does nothing if it has settled. */
	resolve(commit: CommitResult): void;
	/** Does nothing if it has settled. */
	reject(error: unknown): void;
}

/** The approximate overhead of a mutation in a request, without its key and value. */
const mutationOverhead = 64;

/**
 * Creates a pending commit.
 *
 * @param onSettled Called once, before `result` settles.
 * @throws TypeError if a resource has no id.
 */
export function createPendingCommit(
	mutations: readonly Mutation[],
	{
		fence,
		writtenBy = deploymentWriter,
		sinceMs,
	}: Pick<CommitOptions, "fence" | "writtenBy"> & Pick<PendingCommit, "sinceMs">,
	keys: Keys,
	onSettled: (pending: PendingCommit) => void,
): PendingCommit {
	const { promise, resolve, reject } = Promise.withResolvers<CommitResult>();
	const names = mutations.map((mutation) => keys.resource(idOf(mutation)));
	const bodies = mutations.flatMap((mutation) =>
		mutation.op === "put" ? [toBinary(ResourceSchema, { ...mutation.resource, version: "" })] : [],
	);
	let settled = false;
	const settle = (deliver: () => void) => {
		if (!settled) {
			settled = true;
			onSettled(pending);
			deliver();
		}
	};
	const pending: PendingCommit = {
		mutations,
		keys: names,
		bodies,
		bytes: sizeOf(names, bodies),
		fence,
		writtenBy,
		sinceMs,
		fresh: false,
		alone: false,
		get settled() {
			return settled;
		},
		result: promise,
		resolve: (commit) => settle(() => resolve(commit)),
		reject: (error) => settle(() => reject(error)),
	};
	return pending;
}

/**
 * The id of a mutation.
 *
 * @throws TypeError if a resource has no id.
 */
export function idOf(mutation: Mutation): ID {
	const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
	if (id === undefined) {
		throw new TypeError("put needs an id with a type and a name");
	}
	return id;
}

function sizeOf(keys: readonly string[], bodies: readonly Uint8Array[]): number {
	let size = 0;
	for (const key of keys) {
		// Once to compare, once to write.
		size += 2 * key.length + mutationOverhead;
	}
	for (const { byteLength } of bodies) {
		size += byteLength;
	}
	return size;
}
