/** What tests of types and controllers import. */
export {
	type BreakableWatch,
	type CallSelector,
	type ClientFaults,
	type LoggedLine,
	type QuiesceOptions,
	type ReconcileOnceOptions,
	type ReconcileOutcome,
	reconcileOnce,
	type Stall,
	startTestServer,
	type TestLeases,
	type TestLog,
	type TestServer,
	type TestServerOptions,
	type WatchSelector,
	type WriteOptions,
} from "@plinth/testing";
