export { protocGenClone } from "./plugin.ts";
