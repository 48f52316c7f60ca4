import { toBinary } from "@bufbuild/protobuf";
import { type ID, ResourceSchema } from "@plinth/proto";
import type { Fence } from "@plinth/runtime";
import type { Commit, Mutation } from "@plinth/storage";
import type { Keys } from "../keys.ts";

/** A commit that waits for its answer. */
export interface PendingCommit {
	readonly mutations: readonly Mutation[];
	/** Per mutation, the key in etcd. */
	readonly keys: readonly string[];
	/** Per put, the serialized resource without a version. */
	readonly bodies: readonly Uint8Array[];
	/** About how many bytes it takes in a request. */
	readonly bytes: number;
	readonly fence: Fence | undefined;
	/** Whether the state was caught up with etcd since the commit was made: then what it says is final. */
	fresh: boolean;
	/** Whether it shares no transaction, because one that it shared was refused. */
	alone: boolean;
	/** Whether it has its answer. */
	readonly settled: boolean;
	/** Settles with the answer. */
	readonly answered: Promise<Commit>;
	/** Answers it; does nothing where it has its answer. */
	resolve(commit: Commit): void;
	/** Answers it; does nothing where it has its answer. */
	reject(error: unknown): void;
}

/** What the parts of a request take beside keys and values, roughly: per mutation. */
const mutationOverhead = 64;

/**
 * A commit without an answer.
 *
 * @param onSettled Called once, before whoever waits for the answer hears of it.
 * @throws TypeError if a resource has no id.
 */
export function createPendingCommit(
	mutations: readonly Mutation[],
	fence: Fence | undefined,
	keys: Keys,
	onSettled: (pending: PendingCommit) => void,
): PendingCommit {
	const { promise, resolve, reject } = Promise.withResolvers<Commit>();
	const names = mutations.map((mutation) => keys.resource(idOf(mutation)));
	const bodies = mutations.flatMap((mutation) =>
		mutation.op === "put" ? [toBinary(ResourceSchema, { ...mutation.resource, version: "" })] : [],
	);
	let settled = false;
	const settle = (answer: () => void) => {
		if (!settled) {
			settled = true;
			onSettled(pending);
			answer();
		}
	};
	const pending: PendingCommit = {
		mutations,
		keys: names,
		bodies,
		bytes: sizeOf(names, bodies),
		fence,
		fresh: false,
		alone: false,
		get settled() {
			return settled;
		},
		answered: promise,
		resolve: (commit) => settle(() => resolve(commit)),
		reject: (error) => settle(() => reject(error)),
	};
	return pending;
}

/**
 * What a mutation is about.
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
