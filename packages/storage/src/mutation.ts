import type { ID, Resource } from "@plinth/proto";

/**
 * A part of a commit. Versions are compared, never parsed; the expected version `""` stands for
 * "is not there". All conditions of a commit are about the state before it. No two mutations of a
 * commit write the same name: that is a bug of the caller, and a TypeError; one may write what
 * another asserts.
 */
export type Mutation =
	/**
	 * Stores the resource over the expected version. Its uid must be that of what it replaces, or the
	 * commit fails as WrongUid, whatever the versions; but where nothing is expected and something is
	 * there, it fails as CasFailure. The stored object is a shallow copy with the version of the
	 * commit; the caller gives up the rest.
	 */
	| { readonly op: "put"; readonly resource: Resource; readonly expectedVersion: string }
	/**
	 * Removes the resource of the expected version. With a uid in its id that differs from the
	 * stored one it does nothing when it is the commit's only mutation, and fails the commit as
	 * WrongUid among others. Deleting what is missing does nothing, whatever is expected.
	 */
	| { readonly op: "delete"; readonly id: ID; readonly expectedVersion: string }
	/**
	 * Demands that the resource is there, at the version and of the uid that are given (the uid may be
	 * in the id as well; empty is any); or, with the version `""`, that nothing is there under its
	 * name, of whatever uid. Writes nothing.
	 */
	| {
			readonly op: "assert";
			readonly id: ID;
			readonly expectedVersion?: string;
			readonly uid?: string;
	  };

/** What a commit has done. */
export interface Commit {
	/**
	 * The revision of the commit; empty where nothing changed. Of a dry run, the newest one that there
	 * is.
	 */
	readonly version: string;
	/** Per mutation: what is stored now; `undefined` for deletions and asserts. */
	readonly resources: readonly (Resource | undefined)[];
}
