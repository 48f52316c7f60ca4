export type { ConstraintLimits } from "./node/limits.ts";
export type { HolderQueryCount, ReferenceMetrics, WaitReason } from "./node/metrics.ts";
export { openReferences, type References } from "./node/open-references.ts";
export {
	type ReferencesPhase,
	type ReferencesState,
	referencesPhases,
} from "./node/phases.ts";
export type {
	ControlOptions,
	DeploymentMembership,
	ReferencesOptions,
} from "./node/references-options.ts";
export type { DeploymentConfiguration } from "./registry/deployment-configuration.ts";
export { Deployment, metaService, metaTypes } from "./registry/meta-types.ts";
export {
	type FoundReference,
	type ReferenceRule,
	referenceProblems,
} from "./schema/reference-fields.ts";
export {
	type DeclaredReference,
	DescriptorError,
	type DescriptorOptions,
	type ImportedService,
	ServiceDescriptor,
} from "./schema/service-descriptor.ts";
export { referencesFinalizer } from "./shadow/shadow.ts";
export { ResourceShadow } from "./shadow/shadow-records.ts";
