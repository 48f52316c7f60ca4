export { type ActiveSchema, followActiveSchema } from "./active-schema.ts";
export type { ConstraintContext, QueryHints, ReferenceRelease } from "./constraint-context.ts";
export { type Constraints, type ConstraintsOptions, createConstraints } from "./constraints.ts";
export { followDeletions } from "./controller/follow-deletions.ts";
export type { HandlerResult } from "./controller/handler-result.ts";
export { ReferenceManager, type ReferenceManagerOptions } from "./controller/reference-manager.ts";
export { ShadowHandlers, type ShadowHandlersOptions } from "./controller/shadow-handlers.ts";
export type { Deletion } from "./controller/subscribed-deleting-handler.ts";
export {
	startVersionControllers,
	type VersionControllers,
} from "./controller/version-controllers.ts";
export { ensureDeploymentUid } from "./deployment-uid.ts";
export type { DeploymentInfo, Environment } from "./environment.ts";
export { blocksDeletion, HolderQuery, type HolderResponse, isReleased } from "./holder-query.ts";
export { type ConstraintLimits, defaultConstraintLimits } from "./limits.ts";
export { localEnvironment } from "./local-environment.ts";
export type { HolderQueryCount, ReferenceMetrics, WaitReason } from "./metrics.ts";
export { type FoundReference, type ReferenceRule, referenceProblems } from "./reference-fields.ts";
export { recordDeletedDeployments } from "./registry/deleted-deployments.ts";
export type { DeploymentConfiguration } from "./registry/deployment-configuration.ts";
export {
	DeploymentRegistry,
	type DeploymentRegistryOptions,
	type RegistryState,
} from "./registry/deployment-registry.ts";
export {
	DeletedDeployment,
	Deployment,
	metaService,
	metaTypes,
	Region,
	Service,
} from "./registry/meta-types.ts";
export {
	type DeclaredReference,
	DescriptorError,
	type DescriptorOptions,
	type ImportedService,
	ServiceDescriptor,
} from "./service-descriptor.ts";
export { referencesFinalizer, shadowName } from "./shadow.ts";
export { ResourceShadow } from "./shadow-records.ts";
export { reestablishOwnReferences } from "./succession.ts";
