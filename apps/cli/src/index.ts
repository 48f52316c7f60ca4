export type { AddCommand, Runner, RunnerOptions } from "./commands/runner.ts";
export { type ExitCode, exitCodes } from "./exit-codes.ts";
export { Failure } from "./failure.ts";
export type { Io } from "./io.ts";
export { processIo } from "./process-io.ts";
export { runCommandLine } from "./program.ts";
export { runProcess } from "./run-process.ts";
export type { Session } from "./session.ts";
