import { StorageError } from "@plinth/storage";
import { UnrecognizedData } from "@plinth/storage-etcd";
import { StorageFileError } from "@plinth/storage-sqlite";
import { ListenError } from "../listener/listen-error.ts";
import { ModuleError } from "../module/load-module.ts";

const expected = [StorageError, ModuleError, ListenError, StorageFileError, UnrecognizedData];

/** The message for the failure of a command; expected failures explain themselves and have no stack. */
export function explainFailure(failure: unknown): string {
	if (!(failure instanceof Error)) {
		return String(failure);
	}
	return expected.some((kind) => failure instanceof kind)
		? `plinth-server: ${failure.message}`
		: `plinth-server: ${failure.stack ?? failure.message}`;
}
