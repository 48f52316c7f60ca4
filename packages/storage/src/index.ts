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
export type { Commit, Mutation } from "./mutation.ts";
export { type ListQuery, matches, wildcard } from "./query.ts";
export type { WatchEvent } from "./watch-event.ts";
