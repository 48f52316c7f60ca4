/** What the tests of other packages use. Not published. */
export { parseCommandLine } from "./configuration/configuration.ts";
export { parseAccessFile } from "./security/access-file.ts";
