import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import {
	type BackupReport,
	type CopyOptions,
	type SqliteBackend,
	StorageFileError,
} from "@plinth/storage-sqlite";

/** The source of backups while a server has the storage open. */
export type StorageCopies =
	/** The server takes them. */
	| { readonly kind: "taken-here"; take(options?: CopyOptions): Promise<StorageCopy> }
	/** The server does not take them; `instead` tells operators what to do. */
	| { readonly kind: "taken-elsewhere"; readonly instead: string };

/** A complete backup. Disposing of it deletes its file. */
export interface StorageCopy extends AsyncDisposable {
	readonly report: Pick<BackupReport, "version" | "resources" | "identity">;
	readonly sizeBytes: number;
	/** The bytes of the file, in order, in chunks of bounded size. */
	chunks(): AsyncIterable<Uint8Array>;
}

/** How much of a backup a stream holds in memory. */
const chunkBytes = 128 * 1024;

/**
 * Backups of an open sqlite storage. Only one is on disk at a time: until it is disposed of, `take` rejects with
 * StorageFileError `in-use`.
 *
 * @param directory used for nothing else, and emptied. It is created if it is missing, with access for its owner only.
 */
export async function sqliteCopies(
	backend: Pick<SqliteBackend, "backup">,
	directory: string,
): Promise<StorageCopies> {
	// A process that was killed may have left a file.
	const clear = () => rm(directory, { recursive: true, force: true });
	await clear();
	let isTaken = false;
	const take = async (options: CopyOptions = {}): Promise<StorageCopy> => {
		if (isTaken) {
			throw new StorageFileError(
				directory,
				"in-use",
				"another backup is in progress: try again when it is complete",
			);
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
				// A new buffer for each chunk: earlier ones may not have been sent yet.
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
