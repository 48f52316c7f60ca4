export type { AttentionCounts } from "./attention-census.ts";
export type {
	CommitOptions,
	Consistency,
	Listing,
	ReadOptions,
	Rebase,
	SnapshotOptions,
	StorageBackend,
	WatchOptions,
} from "./backend.ts";
export type { CommitBatch } from "./commit-batch.ts";
export {
	assignVersion,
	changesNothing,
	evaluateMutations,
	type MutationEffect,
	type StateChange,
	type StateView,
} from "./compare-and-swap.ts";
export { type DecidedCommit, decideCommit } from "./decide-commit.ts";
export { decorateBackend } from "./decorate-backend.ts";
export {
	CasFailure,
	Exhausted,
	Fenced,
	GroupVersionMismatch,
	NotFound,
	type RefusalDetail,
	Refused,
	SnapshotEnded,
	StateTooLarge,
	StorageError,
	StorageUnavailable,
	VersionCompacted,
	WatchClosed,
	WrongUid,
} from "./errors.ts";
export {
	type EventRow,
	type EventStorage,
	type EventWriteOptions,
	maxEventBytes,
	maxEventRows,
} from "./event-storage.ts";
export { firstRevisionAfterRestore } from "./first-revision-after-restore.ts";
export type {
	HistoryOptions,
	HistorySource,
	StoredHistory,
	StoredVersion,
	VersionChange,
} from "./history.ts";
export {
	checkCommitLimits,
	checkGrowth,
	defaultStorageLimits,
	memoryGrowth,
	type StorageLimits,
} from "./limits.ts";
export {
	createMemoryBackend,
	type MemoryBackend,
	type MemoryBackendOptions,
} from "./memory-backend.ts";
export { MemoryEventStorage } from "./memory-event-storage.ts";
export type { CommitResult, Mutation } from "./mutation.ts";
export { type ListQuery, matches, wildcard } from "./query.ts";
export {
	LocalServerDirectory,
	type ServerDirectory,
	type ServerRecord,
} from "./server-directory.ts";
export type { Snapshot } from "./snapshot.ts";
export { LoadCapacity } from "./state-store/load-capacity.ts";
export type { OwnedPage } from "./state-store/owner-index.ts";
export { resourceSize } from "./state-store/resource-size.ts";
export { StateStore } from "./state-store/state-store.ts";
export type { StorageIdentity, StorageRestored } from "./storage-identity.ts";
export type { StorageStatistics, TypeStatistics } from "./storage-statistics.ts";
export { storedAs } from "./stored-as.ts";
export type { TenancyUnit } from "./tenancy-census.ts";
export type { DerivedData } from "./watch/derived-data.ts";
export {
	type DeliveryLag,
	WatchDeliveries,
	type WatchDeliveriesOptions,
} from "./watch/watch-deliveries.ts";
export type { WatchEvent } from "./watch-event.ts";
export { deploymentWriter } from "./written-by.ts";
