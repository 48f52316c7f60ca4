export { createReaper, firstPassDone, type ReaperOptions, reaperName } from "./reaper.ts";
export {
	createTenancyDeletion,
	emptied,
	type TenancyDeletionOptions,
} from "./tenancy-deletion.ts";
