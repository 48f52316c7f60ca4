export { accessOf, consistencyHeader, fenceHeader, tokenHeader } from "./call.ts";
export { limits } from "./limits.ts";
export { everyoneMayDoEverything } from "./open-access.ts";
export { type Policy, PolicyAuthorizer, type PolicyRule } from "./policy-authorizer.ts";
export { createResourceService, type ResourceServiceOptions } from "./resource-service.ts";
export { sendErrorsWell } from "./sendable-errors.ts";
export { ensureDefaultTenancy } from "./tenancy-defaults.ts";
