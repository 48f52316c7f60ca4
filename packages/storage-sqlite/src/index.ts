export { createSqliteBackend, type SqliteBackendOptions } from "./sqlite-backend.ts";
export { StorageFileError, type StorageFileProblem } from "./storage-file-error.ts";
