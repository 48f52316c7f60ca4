/** The exports for tests of other packages. Not published. */
export { forwardedMethod, knownMethod } from "./agent/known-methods.ts";
export { parseCommandLine } from "./configuration/configuration.ts";
export { parseAccessFile } from "./security/access-file.ts";
