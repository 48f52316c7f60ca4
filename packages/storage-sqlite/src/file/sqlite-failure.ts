import { StorageFileError, type StorageFileProblem } from "../storage-file-error.ts";

/** The result codes of SQLite that need different handling. */
const sqlError = 1;
const databaseBusy = 5;
const locked = 6;
const permission = 3;
const outOfMemory = 7;
const readOnly = 8;
const ioError = 10;
const corrupt = 11;
const full = 13;
const cantOpen = 14;
const tooBig = 18;
const constraint = 19;
const mismatch = 20;
const range = 25;
const shortRead = ioError | (2 << 8);
/** There is no room for the index of the write-ahead log, which SQLite creates beside a file to read it. */
const noRoomForIndex = ioError | (19 << 8);

/** SQLite's extended result code of an error; `undefined` for other errors. */
function sqliteCode(error: unknown): number | undefined {
	return error instanceof Error && "errcode" in error && typeof error.errcode === "number"
		? error.errcode
		: undefined;
}

/** The message of an error, with the extended result code of SQLite, which distinguishes a failed sync from a failed write. */
export function reasonOf(error: unknown): string {
	const code = sqliteCode(error);
	const message = error instanceof Error ? error.message : String(error);
	return code === undefined ? message : `${message} (SQLite error ${code})`;
}

/** Whether the error means that the disk is full. */
export function isDiskFull(error: unknown): boolean {
	const code = sqliteCode(error);
	return code === undefined
		? error instanceof Error &&
				"code" in error &&
				(error.code === "ENOSPC" || error.code === "EDQUOT")
		: (code & 0xff) === full || code === noRoomForIndex;
}

/** Whether something else on the connection or the file has to end first. */
export function isInUse(error: unknown): boolean {
	const code = sqliteCode(error);
	return code !== undefined && [databaseBusy, locked].includes(code & 0xff);
}

const statementCodes: ReadonlySet<number> = new Set([
	...[sqlError, corrupt, tooBig, constraint, mismatch, range],
]);

/** Whether a statement failed because of what it says or of the table it is for, and not because of the disk. */
export function isOfStatement(error: unknown): boolean {
	const code = sqliteCode(error);
	return code !== undefined && statementCodes.has(code & 0xff);
}

/** Classifies an error of opening or reading a file. An error with no other explanation means damage. */
function problemOf(error: unknown): StorageFileProblem {
	if (isDiskFull(error)) {
		return "disk-full";
	}
	const code = sqliteCode(error);
	if (code === undefined) {
		return error instanceof Error && "syscall" in error ? "unreachable" : "damaged";
	}
	switch (code & 0xff) {
		case databaseBusy:
		case locked:
			return "in-use";
		case permission:
		case outOfMemory:
		case readOnly:
		case cantOpen:
			return "unreachable";
		case ioError:
			// A short read means that the file is truncated; other failures are those of the disk.
			return code === shortRead ? "damaged" : "unreachable";
		default:
			return "damaged";
	}
}

const advice: Partial<Readonly<Record<StorageFileProblem, string>>> = {
	"in-use": "another process has the file open: stop it, and try again",
	unreachable:
		"the system does not allow the file to be opened or read, which says nothing about its content",
	"disk-full":
		"the disk is full, and opening the file needs some room beside it. Free some, and try again: nothing is lost",
	damaged: "the file is damaged. It has been left as it is: restore it from a backup",
};

/**
 * Converts an error of opening or reading a file to a `StorageFileError`.
 *
 * @param file - what the file is for.
 */
export function fileError(
	path: string,
	cause: unknown,
	file: StorageFileError["file"] = "storage",
): StorageFileError {
	if (cause instanceof StorageFileError) {
		return file === cause.file || cause.path !== path
			? cause
			: new StorageFileError(path, cause.problem, cause.reason, { cause, file });
	}
	const problem = problemOf(cause);
	const why = cause instanceof Error ? cause.message : String(cause);
	const what =
		file === "backup" && problem === "damaged"
			? "the file is damaged, and has been left as it is: use another backup"
			: advice[problem];
	return new StorageFileError(path, problem, `${what}: ${why}`, { cause, file });
}
