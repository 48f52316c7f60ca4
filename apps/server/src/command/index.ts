import type { serve as serveConfiguration } from "./serve.ts";

export { type Configuration, parseCommandLine } from "../configuration/configuration.ts";
export { FileError } from "../configuration/located-yaml.ts";
export { UsageError } from "../configuration/usage-error.ts";
export { type CommandContext, runCommand, type TextOutput } from "./run-command.ts";
export type { ServeHooks } from "./serve.ts";

/** Runs a server until it stops. The server's code is loaded by the first call: reading a command line needs none. */
export const serve: typeof serveConfiguration = async (...args) =>
	(await import("./serve.ts")).serve(...args);
