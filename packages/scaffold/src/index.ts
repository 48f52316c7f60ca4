export { addController, type ControllerOptions } from "./controller/add-controller.ts";
export {
	createProject,
	type NewProject,
	type ProjectOptions,
} from "./new-project/create-project.ts";
export { type PackageManager, packageManagers } from "./new-project/package-manager.ts";
export type { Generated } from "./project/generate.ts";
export { ScaffoldError } from "./scaffold-error.ts";
export { addType, type TypeOptions } from "./type/add-type.ts";
