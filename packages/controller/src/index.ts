export type { ResourceClient } from "./client/resource-client.ts";
export type { StatusInit, WriteInit, WriteResult } from "./client/resource-helpers.ts";
export { type ConflictRetryOptions, retryOnConflict } from "./client/retry-on-conflict.ts";
export { fenceHeader } from "./client/runtime-client.ts";
export { reportMessageBytes } from "./cluster/agent-reports.ts";
export type {
	ReportCall,
	ReportingCluster,
	ReportingServer,
	ReportQuestion,
	ServerReport,
} from "./cluster/cluster.ts";
export { mergeControllers } from "./cluster/merge-controllers.ts";
export { cachedTypes } from "./define/cached-types.ts";
export {
	allOf,
	anyChange,
	anyOf,
	type Change,
	type ChangePredicate,
	contentChanged,
	metadataChanged,
	statusChanged,
	updated,
} from "./define/change.ts";
export type { InitializeContext, MapperContext, ReconcileContext } from "./define/context.ts";
export {
	type Controller,
	type ControllerOptions,
	defineController,
	type Placement,
	type ReconcileRequest,
} from "./define/controller.ts";
export { type Mapper, type MapResult, readOnly } from "./define/mapper.ts";
export { type Requeue, requeueAfter, requeueNow } from "./define/requeue.ts";
export type { Share, WorkHold } from "./define/share.ts";
export {
	type CustomWatch,
	type CustomWatchOptions,
	type KeyedEvent,
	type ResourceWatch,
	type SourceContext,
	type WatchedRegions,
	type WatchOptions,
	watch,
	watchEvents,
} from "./define/watch.ts";
export { checkController } from "./manager/check-controller.ts";
export { controllerMessage } from "./manager/controller-messages.ts";
export {
	type AgentReporting,
	type ControllerReports,
	type ControllerServiceOptions,
	createControllerService,
} from "./manager/controller-service.ts";
export type {
	ControllerState,
	ManagerState,
	ReconcileState,
	RunError,
} from "./manager/controller-state.ts";
export {
	type Dependency,
	type DependencyGraph,
	dependencyGraph,
	toMermaid,
} from "./manager/dependency-graph.ts";
export {
	type ControllerManager,
	type ControllerManagerOptions,
	createControllerManager,
	singletonLease,
} from "./manager/manager.ts";
export { reportMessages } from "./manager/report-messages.ts";
export { cacheGet, cacheList, cacheParents, type Lookup } from "./mappers/cache-lookup.ts";
export { chain, merge, type Transformation, transform } from "./mappers/combinators.ts";
export { type IdModifier, inTenancy, named, ofType } from "./mappers/id-modifier.ts";
export { mapOwner, ownerOfType } from "./mappers/owner.ts";
export { sameNameAs } from "./mappers/same-name.ts";
export type { KeyState, QueueState } from "./queue/merging-queue.ts";
export type { EntryState, KeyFailure } from "./queue/queue-entry.ts";
export type { PooledKey } from "./queue/worker-pool.ts";
export type { EndlessChain } from "./queue/write-chains.ts";
export { type ControllerLimits, defaultControllerLimits } from "./run/limits.ts";
export type { OwnWritesMetrics } from "./run/own-writes.ts";
export type { Phase } from "./run/phase.ts";
export type { ReconcileCounts, ReconcileFailure } from "./run/reconcile-tally.ts";
export type { RunState, RunWork } from "./run/run.ts";
export { type ShardLease, shardLeaseOf } from "./shards/shard-leases.ts";
