export { consistencyHeader, fenceHeader, tokenHeader } from "./call.ts";
export { limits } from "./limits.ts";
export { refuseMalformedMessages } from "./malformed-messages.ts";
export { everyoneMayDoEverything } from "./open-access.ts";
export { type Policy, PolicyAuthorizer, type PolicyRule } from "./policy-authorizer.ts";
export { createResourceService, type ResourceServiceOptions } from "./resource-service.ts";
export { ensureDefaultTenancy } from "./tenancy-defaults.ts";
