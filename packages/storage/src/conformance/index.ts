export type { Behaviour, BehaviourGroup, Harness, HarnessFactory } from "./behaviour.ts";
export { behaviourGroups, describeConformance, type TestRunner } from "./describe-conformance.ts";
