/**
 * Tests of controllers, for benches on which another package runs them: what holds before a reconcile, after its writes, and of
 * the objects in caches. Not published.
 */
export { Album, Artist, demo, Label } from "./demo-types.fixture.ts";
export type { SeenWatch } from "./fake-service.fixture.ts";
export type { LoggedLine } from "./running-manager.fixture.ts";
export { Stalls } from "./stalls.fixture.ts";
export { identity } from "./suite/identity.fixture.ts";
export { clientOfReconcile, noRewind } from "./suite/no-rewind.fixture.ts";
export { priming } from "./suite/priming.fixture.ts";
export {
	type Bench,
	type BenchService,
	declareSuite,
	runOn,
	type Scenario,
	type Suite,
} from "./suite/scenario.fixture.ts";
