import type { Fence } from "@plinth/runtime";
import type { Commit, Mutation } from "@plinth/storage";

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
	/** Settles when it has its answer. */
	readonly answered: Promise<unknown>;
	resolve(commit: Commit): void;
	reject(error: unknown): void;
}
