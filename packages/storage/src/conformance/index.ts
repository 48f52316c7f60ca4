export type { Behavior, BehaviorGroup, Harness, HarnessFactory } from "./behavior.ts";
export { behaviorGroups, describeConformance, type TestRunner } from "./describe-conformance.ts";
export { describeEventConformance, type EventHarness } from "./events.ts";
