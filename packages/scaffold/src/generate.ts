export { addController, type ControllerOptions } from "./controller/add-controller.ts";
export type { Generated } from "./project/generate.ts";
export type { NewFile } from "./project/write-changes.ts";
export { addType, type TypeOptions } from "./type/add-type.ts";
