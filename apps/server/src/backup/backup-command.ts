import { join } from "node:path";
import type { Logger } from "@plinth/runtime";
import { backupFile, restoreFile, StorageFileError } from "@plinth/storage-sqlite";
import type { Configuration } from "../configuration/configuration.ts";
import { UsageError } from "../configuration/usage-error.ts";
import { openDataDirectory } from "../storage/data-directory.ts";
import { databaseFile } from "../storage/open-storage.ts";

/** Copies of the embedded storage, of a server that does not run. */
export type CopyCommand = "backup" | "restore";

/** Whether the argument asks for one. */
export function isCopyCommand(argument: string | undefined): argument is CopyCommand {
	return argument === "backup" || argument === "restore";
}

/**
 * Backs the storage up into a file, or puts a backup in its place. Answers what was done, in a line.
 *
 * @throws UsageError; StorageFileError, where a server has the storage open, or a file is not what it
 *   should be.
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
			`${command} is for --storage sqlite${storage === "etcd" ? "; etcd has its own snapshots" : ""}`,
		);
	}
	const path = join(dataDirectory, databaseFile);
	if (command === "backup") {
		const { resources, version } = await backupFile({ path, to: file }).catch(explainRunning);
		return `${file} has ${resources} resources, as of version ${version}\n`;
	}
	await openDataDirectory(dataDirectory, logger);
	const { resources, version, replaced } = await restoreFile({ path, from: file });
	const kept = replaced === undefined ? "" : `; what was there before is kept as ${replaced}`;
	return `${path} has ${resources} resources, all of version ${version}${kept}\n`;
}

/** A server that runs is asked itself. */
function explainRunning(failure: unknown): never {
	if (failure instanceof StorageFileError && failure.problem === "in-use") {
		throw new StorageFileError(
			failure.path,
			failure.problem,
			`${failure.why}. A server that runs is asked for a backup: plinth backup <file>`,
			{ cause: failure },
		);
	}
	throw failure;
}
