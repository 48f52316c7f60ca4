export { enforce } from "./authorization.ts";
export { accessOf, consistencyHeader, fenceHeader, tokenHeader } from "./call.ts";
export { limits } from "./limits.ts";
export { deploymentItself, everyoneMayDoEverything } from "./open-access.ts";
export {
	accessUnder,
	type Policy,
	PolicyAuthorizer,
	type PolicyRule,
	tokenHash,
} from "./policy-authorizer.ts";
export { type Callers, createCallers } from "./request-caller.ts";
export { createResourceService, type ResourceServiceOptions } from "./resource-service.ts";
export { ruleProblems } from "./rule-problems.ts";
export { sendErrorsWell } from "./sendable-errors.ts";
export { tableProblems } from "./table-problems.ts";
export { ensureDefaultTenancy } from "./tenancy-defaults.ts";
export { removal } from "./tombstone.ts";
export { createTypeService, type TypeServiceOptions } from "./type-service.ts";
