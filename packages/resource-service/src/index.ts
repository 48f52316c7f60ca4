export {
	authenticateCall,
	rememberAccess,
	tokenHeader,
	tokenOf,
} from "./access/authenticate-call.ts";
export { enforce } from "./access/authorization.ts";
export { deploymentAuthorizer, insecureAllowAll } from "./access/open-access.ts";
export {
	type Policy,
	PolicyAuthorizer,
	type PolicyRule,
	policyAccess,
	tokenHash,
} from "./access/policy-authorizer.ts";
export {
	type CallerAuthenticator,
	callerOf,
	createCallerAuthenticator,
} from "./access/request-caller.ts";
export { describedPolicy, requireWholeType, wholeTypeHeader } from "./access/whole-type.ts";
export { correctConnectError, correctConnectErrors } from "./errors/sendable-errors.ts";
export { createHistoryService, type HistoryServiceOptions } from "./history/history-service.ts";
export { defaultWatchesPerSet, type WatchAdmission } from "./read/watch-admission.ts";
export { WatchSet, type WatchSetOptions } from "./read/watch-set.ts";
export { consistencyHeader, fenceHeader } from "./requests/headers.ts";
export { resourceServiceLimits } from "./requests/limits.ts";
export { notBeforeHeader, positionHeader } from "./requests/position.ts";
export {
	createResourceService,
	type ResourceServiceMethods,
	type ResourceServiceOptions,
} from "./resource-service.ts";
export { ensureDefaultTenancy } from "./tenancy/tenancy-defaults.ts";
export { createTypeService, type TypeServiceOptions } from "./type-service.ts";
export { ruleProblems } from "./validation/rule-problems.ts";
export { tableProblems } from "./validation/table-problems.ts";
export { CopyCheck } from "./write/copy-check.ts";
export { deletionWithTombstone } from "./write/tombstone.ts";
