export { type ExitCode, exitCodes } from "./exit-codes.ts";
export type { Io } from "./io.ts";
export { processIo } from "./process-io.ts";
export { runCommandLine } from "./program.ts";
