export {
	createLocalReaper,
	createReaper,
	firstPassDone,
	ownedDeleted,
	type ReaperOptions,
	reaperName,
} from "./owner-deletion.ts";
export {
	createLocalTenancyDeletion,
	createTenancyDeletion,
	emptied,
	type TenancyDeletionOptions,
} from "./tenancy-deletion.ts";
export { resourcesLeft, unregisteredTypes } from "./unregistered-types.ts";
