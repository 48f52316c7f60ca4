/** Why a file can't be opened as a storage. */
export type StorageFileProblem =
	/** Another process, or another backend of this one, has it open. */
	| "in-use"
	/** It is something else: no SQLite database, or one of another application. */
	| "foreign"
	/** A newer Plinth wrote it. */
	| "newer"
	/** What is in it contradicts its checksums. */
	| "damaged"
	/** The system does not let it be opened. */
	| "unreachable";

/** The file can't be opened as a storage. It has been left as it is. */
export class StorageFileError extends Error {
	override readonly name = "StorageFileError";
	readonly path: string;
	readonly problem: StorageFileProblem;

	constructor(path: string, problem: StorageFileProblem, why: string, options?: ErrorOptions) {
		super(`storage ${path}: ${why}`, options);
		this.path = path;
		this.problem = problem;
	}
}
