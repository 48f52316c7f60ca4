import type { LeaseManager } from "@plinth/runtime";
import type { StorageBackend } from "../backend.ts";
import type { StorageLimits } from "../limits.ts";

/** A backend over an empty storage of its own, with what a behaviour needs of its surroundings. */
export interface Harness {
	readonly backend: StorageBackend;
	/** The leases whose fences the backend checks. */
	readonly leases: LeaseManager;
	/** Lets so many milliseconds go by on the backend's clock. */
	elapse(byMs: number): Promise<void>;
	/** Closes the backend, if that has not happened yet, and removes what it stored. */
	dispose(): Promise<void>;
}

/** Makes a harness; a limit that is not given is the backend's own. */
export type HarnessFactory = (options: {
	readonly limits: Partial<StorageLimits>;
}) => Promise<Harness>;

/** What every backend does, and how to see it. */
export interface Behaviour {
	/** Reads as a sentence about the backend: "keeps …". */
	readonly name: string;
	/** Limits that the harness is to be made with. */
	readonly limits?: Partial<StorageLimits>;
	/** Rejects where the backend does otherwise. The seed is for behaviours that draw at random. */
	run(harness: Harness, seed: number): Promise<void>;
	/** Run once per seed. */
	readonly seeded?: boolean;
}

/** Behaviours on one subject. */
export interface BehaviourGroup {
	readonly subject: string;
	readonly behaviours: readonly Behaviour[];
}
