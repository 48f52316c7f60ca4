import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@plinth/runtime";
import { backupFile, checkBackupFile, restoreFile, StorageFileError } from "@plinth/storage-sqlite";
import type { Configuration } from "../configuration/configuration.ts";
import { UsageError } from "../configuration/usage-error.ts";
import { openDataDirectory } from "../storage/data-directory.ts";
import { databaseFile } from "../storage/open-storage.ts";

/** The commands that back up and restore the sqlite storage of a server that is not running. */
export type CopyCommand = "backup" | "restore";

/**
 * Backs the storage up to a file, or restores a backup. Returns a line that describes the result.
 *
 * @throws UsageError; StorageFileError if a server has the storage open, or a file is not valid.
 */
export async function copyStorage(
	command: CopyCommand,
	file: string | undefined,
	{ storage, dataDirectory }: Pick<Configuration, "storage" | "dataDirectory">,
	logger: Logger,
): Promise<string> {
	if (file === undefined || file.startsWith("-")) {
		throw new UsageError(`${command} needs a file: plinth-server ${command} <file> [flags]`);
	}
	if (storage !== "sqlite") {
		throw new UsageError(
			`${command} needs --storage sqlite${storage === "etcd" ? "; etcd has its own snapshots" : ""}`,
		);
	}
	const path = join(dataDirectory, databaseFile);
	if (command === "backup") {
		const { resources, version } = await backupFile({ path, to: file }).catch(explainRunning);
		return `${file} has ${resources} resources, as of version ${version}\n`;
	}
	if (!existsSync(dataDirectory)) {
		// A restore checks the backup too, but would have created the directory by then.
		checkBackupFile(file);
	}
	await openDataDirectory(dataDirectory, logger);
	const { resources, version, replaced } = await restoreFile({ path, from: file });
	const kept = replaced === undefined ? "" : `; the previous file is kept as ${replaced}`;
	return `${path} has ${resources} resources, all with version ${version}${kept}\n`;
}

/** Names the command that takes a backup from a running server. */
function explainRunning(failure: unknown): never {
	if (failure instanceof StorageFileError && failure.problem === "in-use") {
		throw new StorageFileError(
			failure.path,
			failure.problem,
			`${failure.reason}. To back up a running server, use plinth backup <file>`,
			{ cause: failure },
		);
	}
	throw failure;
}
