/** The exports for tests of other packages. Not published. */
export { parseCommandLine } from "./configuration/configuration.ts";
export { parseAccessFile } from "./security/access-file.ts";
