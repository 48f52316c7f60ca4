export type { ConstraintLimits } from "./limits.ts";
export type { HolderQueryCount, ReferenceMetrics, WaitReason } from "./metrics.ts";
export { openReferences, type References } from "./node/open-references.ts";
export type { ReferencesPhase, ReferencesState } from "./node/phases.ts";
export type {
	ControlOptions,
	DeploymentMembership,
	ReferencesOptions,
} from "./node/references-options.ts";
export { type FoundReference, type ReferenceRule, referenceProblems } from "./reference-fields.ts";
export type { DeploymentConfiguration } from "./registry/deployment-configuration.ts";
export { Deployment, metaService, metaTypes } from "./registry/meta-types.ts";
export {
	type DeclaredReference,
	DescriptorError,
	type DescriptorOptions,
	type ImportedService,
	ServiceDescriptor,
} from "./service-descriptor.ts";
export { referencesFinalizer } from "./shadow.ts";
export { ResourceShadow } from "./shadow-records.ts";
