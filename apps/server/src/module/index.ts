export {
	defineModule,
	type Module,
	type ModuleContext,
	type ModuleDefinition,
} from "./define-module.ts";
