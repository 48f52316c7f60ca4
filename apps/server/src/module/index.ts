export {
	defineModule,
	type Module,
	type ModuleContext,
	type ModuleDefinition,
} from "./define-module.ts";
export { standInModule } from "./stand-in-module.ts";
export { standInType } from "./stand-in-type.ts";
