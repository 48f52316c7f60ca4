export {
	type BackupOptions,
	type BackupReport,
	backupFile,
	type ClosedStorage,
	type RestoreOptions,
	type RestoreReport,
	restoreFile,
} from "./backup-file.ts";
export type { CommitBatch } from "./commit-batch.ts";
export type { CopyOptions, CopyProgress } from "./file-thread.ts";
export { refusePlantedLinks } from "./planted-links.ts";
export {
	createSqliteBackend,
	type SqliteBackend,
	type SqliteBackendOptions,
} from "./sqlite-backend.ts";
export { StorageFileError, type StorageFileProblem } from "./storage-file-error.ts";
