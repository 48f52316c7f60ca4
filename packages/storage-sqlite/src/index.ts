export {
	type BackupOptions,
	type BackupReport,
	backupFile,
	type ClosedStorage,
	type RestoreOptions,
	type RestoreReport,
	restoreFile,
} from "./backup-restore/backup-restore.ts";
export { checkBackupFile } from "./backup-restore/file-jobs.ts";
export type { CopyOptions, CopyProgress } from "./backup-restore/file-thread.ts";
export { refuseUnsafeSymlinks } from "./file-access/unsafe-symlinks.ts";
export {
	createSqliteBackend,
	type SqliteBackend,
	type SqliteBackendOptions,
} from "./sqlite-backend.ts";
export {
	StorageFileError,
	type StorageFileErrorOptions,
	type StorageFileProblem,
} from "./storage-file-error.ts";
