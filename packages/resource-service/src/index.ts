export { enforce } from "./access/authorization.ts";
export { deploymentItself, everyoneMayDoEverything } from "./access/open-access.ts";
export {
	accessUnder,
	type Policy,
	PolicyAuthorizer,
	type PolicyRule,
	tokenHash,
} from "./access/policy-authorizer.ts";
export { type Callers, createCallers } from "./access/request-caller.ts";
export { sendErrorsWell } from "./errors/sendable-errors.ts";
export { accessOf, consistencyHeader, fenceHeader, tokenHeader } from "./requests/headers.ts";
export { limits } from "./requests/limits.ts";
export { createResourceService, type ResourceServiceOptions } from "./resource-service.ts";
export { ensureDefaultTenancy } from "./tenancy/tenancy-defaults.ts";
export { createTypeService, type TypeServiceOptions } from "./type-service.ts";
export { ruleProblems } from "./validation/rule-problems.ts";
export { tableProblems } from "./validation/table-problems.ts";
export { removal } from "./write/tombstone.ts";
