/** Why a file can't be opened as a storage, or be created. */
export type StorageFileProblem =
	/** Another process, or another backend of this one, has it open. */
	| "in-use"
	/** It is not a SQLite database, or one of another application. */
	| "foreign"
	/** A newer Plinth wrote it. */
	| "newer"
	/** Its content does not match its checksums. */
	| "damaged"
	/** The system does not allow it to be opened, read or written. */
	| "unreachable"
	/** It is a backup, which must be restored before it can be opened. */
	| "backup"
	/** The file to create already exists. */
	| "exists"
	/** There is not enough disk space to create the file, or to open it. */
	| "disk-full"
	/** The clock of the machine is behind the storage: versions derived from it may have been issued before. */
	| "clock";

/** Options of a `StorageFileError`. */
export interface StorageFileErrorOptions extends ErrorOptions {
	/** `storage` if absent. */
	readonly file?: StorageFileError["file"];
}

/**
 * A file can't be opened as a storage, backed up or restored. Existing files are left unchanged.
 */
export class StorageFileError extends Error {
	override readonly name = "StorageFileError";
	readonly path: string;
	readonly problem: StorageFileProblem;
	/** The message without the path. */
	readonly reason: string;

	/** What the file is for. */
	readonly file: "storage" | "backup";

	constructor(
		path: string,
		problem: StorageFileProblem,
		reason: string,
		{ file = "storage", ...options }: StorageFileErrorOptions = {},
	) {
		super(`${file} ${path}: ${reason}`, options);
		this.file = file;
		this.path = path;
		this.problem = problem;
		this.reason = reason;
	}
}
