export {
	createLocalReaper,
	createReaper,
	ownedDeletedCondition,
	type ReaperOptions,
	reaperName,
} from "./owner-deletion.ts";
export {
	createLocalTenancyDeletion,
	createTenancyDeletion,
	emptiedCondition,
	type TenancyDeletionOptions,
} from "./tenancy-deletion.ts";
export { resourcesLeftReason, unregisteredTypesReason } from "./unregistered-types.ts";
