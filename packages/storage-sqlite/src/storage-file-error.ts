/** Why a file can't be opened as a storage, or be made. */
export type StorageFileProblem =
	/** Another process, or another backend of this one, has it open. */
	| "in-use"
	/** It is something else: no SQLite database, or one of another application. */
	| "foreign"
	/** A newer Plinth wrote it. */
	| "newer"
	/** What is in it contradicts its checksums. */
	| "damaged"
	/** The system does not let it be opened, read or written. */
	| "unreachable"
	/** It is a backup, which must be restored before it can be opened. */
	| "backup"
	/** A file that was to be made is there already. */
	| "exists"
	/** There is no room for a file that was to be made. */
	| "disk-full"
	/** The clock of the machine is behind the storage: what it would be raised to may have been given out. */
	| "clock";

/**
 * A file can't be opened as a storage, backed up or restored. Whatever was there has been left as it
 * is.
 */
export class StorageFileError extends Error {
	override readonly name = "StorageFileError";
	readonly path: string;
	readonly problem: StorageFileProblem;
	/** The message without the path. */
	readonly why: string;

	constructor(path: string, problem: StorageFileProblem, why: string, options?: ErrorOptions) {
		super(`storage ${path}: ${why}`, options);
		this.path = path;
		this.problem = problem;
		this.why = why;
	}
}
