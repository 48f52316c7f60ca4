import type { ID, Resource } from "@plinth/proto";

/**
 * A part of a commit. Versions are compared, never parsed; the expected version `""` means that the
 * resource must not exist. All conditions apply to the state before the commit. Two mutations of a commit
 * must not write the same name (a bug of the caller, thrown as TypeError); one may write a name that
 * another asserts.
 */
export type Mutation =
	/**
	 * Replaces the expected version by the resource. Its uid must be that of the replaced resource, or
	 * the commit fails as WrongUid, whatever the versions; if no resource is expected and one exists, it
	 * fails as CasFailure. The stored object is a shallow copy with the version of the commit; the caller
	 * must not change the nested objects afterwards.
	 */
	| {
			readonly op: "put";
			readonly resource: Resource;
			readonly expectedVersion: string;
			/** The stored resource of the expected version, if the caller has it: saves decorators a lookup. */
			readonly replaces?: Resource;
	  }
	/**
	 * Removes the resource of the expected version. If the id has another uid than the stored resource,
	 * it does nothing as the only mutation of a commit, and fails a larger commit as WrongUid. Deleting a
	 * missing resource does nothing, whatever version is expected.
	 */
	| { readonly op: "delete"; readonly id: ID; readonly expectedVersion: string }
	/**
	 * Requires that the resource exists, at the version and with the uid given, if any (the uid may be
	 * in the id instead); or, with the version `""`, that no resource of its name exists, whatever its
	 * uid. Writes nothing.
	 */
	| {
			readonly op: "assert";
			readonly id: ID;
			readonly expectedVersion?: string;
			readonly uid?: string;
	  };

/** The result of a commit. */
export interface CommitResult {
	/**
	 * The revision of the commit; empty if nothing changed. For a dry run, the newest revision.
	 */
	readonly version: string;
	/**
	 * Per mutation: the stored resource; `undefined` for deletions and asserts. Decorators that commit further mutations
	 * behind those of the caller may leave theirs at the end.
	 */
	readonly resources: readonly (Resource | undefined)[];
}
