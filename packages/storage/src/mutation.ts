import type { ID, Resource } from "@plinth/proto";

/**
 * A part of a commit. Versions are compared, never parsed; the expected version `""` stands for
 * "is not there".
 */
export type Mutation =
	/**
	 * Stores the resource over the expected version. Its uid must be that of what it replaces. The
	 * stored object is a shallow copy with the version of the commit; the caller gives up the rest.
	 */
	| { readonly op: "put"; readonly resource: Resource; readonly expectedVersion: string }
	/**
	 * Removes the resource of the expected version. With a uid in its id that differs from the
	 * stored one it does nothing when it is the commit's only mutation, and fails the commit as
	 * WrongUid among others. Deleting what is missing does nothing.
	 */
	| { readonly op: "delete"; readonly id: ID; readonly expectedVersion: string }
	/** Demands that the resource is there, at a version, of a uid, or (`""`) is not. Writes nothing. */
	| {
			readonly op: "assert";
			readonly id: ID;
			readonly expectedVersion?: string;
			readonly uid?: string;
	  };

/** What a commit has done. */
export interface Commit {
	/** The revision of the commit; of a dry run, the newest one. Empty where nothing changed. */
	readonly version: string;
	/** Per mutation: what is stored now; `undefined` for deletions and asserts. */
	readonly resources: readonly (Resource | undefined)[];
}
