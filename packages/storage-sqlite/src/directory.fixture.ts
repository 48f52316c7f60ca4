import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageFileError } from "./storage-file-error.ts";

/** A temporary directory for a test, deleted when disposed. */
export interface TestDirectory extends AsyncDisposable {
	readonly path: string;
	/** The path of a file in it. */
	file(name: string): string;
}

/** Creates an empty directory. */
export async function testDirectory(): Promise<TestDirectory> {
	const path = await realpath(await mkdtemp(join(tmpdir(), "plinth-sqlite-")));
	return {
		path,
		file: (name) => join(path, name),
		[Symbol.asyncDispose]: () => rm(path, { recursive: true }),
	};
}

/** The error that a promise rejects with, which must be a StorageFileError. */
export async function fileFailure(promise: Promise<unknown>): Promise<StorageFileError> {
	const error = await promise.then(
		() => new Error("it did not fail"),
		(reason: unknown) => reason,
	);
	if (error instanceof StorageFileError) {
		return error;
	}
	throw error;
}
