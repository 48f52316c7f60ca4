import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import {
	type BackupReport,
	type CopyOptions,
	type SqliteBackend,
	StorageFileError,
} from "@plinth/storage-sqlite";

/** Where backups of a storage come from while a server has it open. */
export type StorageCopies =
	/** The server takes them itself. */
	| { readonly kind: "taken-here"; take(options?: CopyOptions): Promise<StorageCopy> }
	/** They don't come from the server: what to do instead, for people. */
	| { readonly kind: "taken-elsewhere"; readonly instead: string };

/** A backup that is whole, and gone from the disk when it is disposed of. */
export interface StorageCopy extends AsyncDisposable {
	readonly report: Pick<BackupReport, "version" | "resources" | "identity">;
	readonly sizeBytes: number;
	/** The bytes of the file, in order, as many at a time as there is room for in memory. */
	chunks(): AsyncIterable<Uint8Array>;
}

/** What a stream holds in memory of a backup. */
const chunkBytes = 128 * 1024;

/**
 * Copies of an open sqlite storage. One is on the disk at a time: until it is disposed of, `take` rejects
 * with StorageFileError `in-use`.
 *
 * @param directory Is theirs alone, and emptied. It is made where it is missing, readable by its owner.
 */
export async function sqliteCopies(
	backend: Pick<SqliteBackend, "backup">,
	directory: string,
): Promise<StorageCopies> {
	// What a process that was killed has left.
	const clear = () => rm(directory, { recursive: true, force: true });
	await clear();
	let isTaken = false;
	const take = async (options: CopyOptions = {}): Promise<StorageCopy> => {
		if (isTaken) {
			throw new StorageFileError(directory, "in-use", "a backup is under way: one at a time");
		}
		isTaken = true;
		let file: FileHandle | undefined;
		const release = async () => {
			try {
				await file?.close();
				await clear();
			} finally {
				isTaken = false;
			}
		};
		try {
			await mkdir(directory, { recursive: true, mode: 0o700 });
			const path = join(directory, "copy.sqlite");
			const report = await backend.backup({ ...options, to: path });
			file = await open(path, "r");
			const { size } = await file.stat();
			return copyOf(file, report, size, release);
		} catch (failure) {
			await release();
			throw failure;
		}
	};
	return { kind: "taken-here", take };
}

function copyOf(
	file: FileHandle,
	report: BackupReport,
	sizeBytes: number,
	release: () => Promise<void>,
): StorageCopy {
	let released: Promise<void> | undefined;
	return {
		report,
		sizeBytes,
		async *chunks() {
			for (;;) {
				// Not one buffer for all: what was handed out may be on its way still.
				const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(chunkBytes) });
				if (bytesRead === 0) {
					return;
				}
				yield buffer.subarray(0, bytesRead);
			}
		},
		[Symbol.asyncDispose]() {
			released ??= release();
			return released;
		},
	};
}
