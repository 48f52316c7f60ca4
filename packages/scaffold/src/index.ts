export { suggestion } from "./names/suggestion.ts";
export {
	createProject,
	type NewProject,
	type ProjectOptions,
} from "./new-project/create-project.ts";
export { type PackageManager, packageManagers } from "./new-project/package-manager.ts";
export { ScaffoldError } from "./scaffold-error.ts";
