export type {
	CommitOptions,
	Consistency,
	Listing,
	ReadOptions,
	StorageBackend,
	WatchOptions,
} from "./backend.ts";
export {
	CasFailure,
	Exhausted,
	Fenced,
	GroupVersionMismatch,
	Inconsistent,
	NotFound,
	type RefusalDetail,
	Refused,
	StorageError,
	VersionCompacted,
	WatchClosed,
	WrongUid,
} from "./errors.ts";
export { defaultLimits, type StorageLimits } from "./limits.ts";
export { createMemoryBackend, type MemoryBackendOptions } from "./memory-backend.ts";
export type { Commit, Mutation } from "./mutation.ts";
export { type ListQuery, matches, wildcard } from "./query.ts";
export type { Snapshot } from "./snapshot.ts";
export type { WatchEvent } from "./watch-event.ts";
