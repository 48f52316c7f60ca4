export {
	type BreakableWatch,
	type CallPoint,
	type CallSelector,
	ClientFaults,
	type FaultPoint,
	type Stall,
	type UnaryMethod,
	type WatchPoint,
	type WatchSelector,
} from "./faults/client-faults.ts";
export { faultyClient } from "./faults/faulty-client.ts";
export type { TestLeases } from "./leases/test-leases.ts";
export { TimedLeases, type TimedLeasesOptions } from "./leases/timed-leases.ts";
export {
	type ReconcileOnceOptions,
	type ReconcileOutcome,
	reconcileOnce,
} from "./reconcile/reconcile-once.ts";
export type { QuiesceOptions } from "./server/at-rest.ts";
export { autoAdvancingClient } from "./server/auto-advancing-client.ts";
export type { Cluster } from "./server/cluster.ts";
export { type LoggedLine, TestLog } from "./server/log.ts";
export type { TestServerOptions } from "./server/options.ts";
export { startTestServer } from "./server/start-test-server.ts";
export type { TestServer, WriteOptions } from "./server/test-server.ts";
