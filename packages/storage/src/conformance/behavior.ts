import type { LeaseManager } from "@plinth/runtime";
import type { StorageBackend } from "../backend.ts";
import type { HistorySource } from "../history.ts";
import type { StorageLimits } from "../limits.ts";

/** A backend on an empty storage, with its leases and its clock. */
export interface Harness {
	readonly backend: StorageBackend & HistorySource;
	/** The leases whose fences the backend checks. */
	readonly leases: LeaseManager;
	/** Advances the clock of the backend. */
	elapse(byMs: number): Promise<void>;
	/** Closes the backend, if it is open, and removes its storage. */
	dispose(): Promise<void>;
}

/** Creates a harness. Omitted limits are those of the backend. */
export type HarnessFactory = (options: {
	readonly limits: Partial<StorageLimits>;
}) => Promise<Harness>;

/** A behavior that every backend must have, with its test. */
export interface Behavior {
	/** Reads as a sentence about the backend: "keeps …". */
	readonly name: string;
	/** Limits of the harness. */
	readonly limits?: Partial<StorageLimits>;
	/** Rejects if the backend behaves differently. The seed is for behaviors with random input. */
	run(harness: Harness, seed: number): Promise<void>;
	/** Run once per seed. */
	readonly seeded?: boolean;
}

/** Behaviors on one subject. */
export interface BehaviorGroup {
	readonly subject: string;
	readonly behaviors: readonly Behavior[];
}
