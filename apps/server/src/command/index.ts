import type { serve as serveConfiguration } from "./serve.ts";

export { type Configuration, parseCommandLine } from "../configuration/configuration.ts";
export { FileError } from "../configuration/located-yaml.ts";
export { UsageError } from "../configuration/usage-error.ts";
export { type CommandContext, runCommand, type TextOutput } from "./run-command.ts";
export type { ServeHooks } from "./serve.ts";

/** Loads the code of a server that stores its data in sqlite, so that a later call of `serve` need not. */
export async function preloadServer(): Promise<void> {
	await Promise.all([import("./serve.ts"), import("@plinth/storage-sqlite")]);
}

/** Runs a server until it stops. Its code is loaded by the first call: reading a command line needs none of it. */
export const serve: typeof serveConfiguration = async (...args) =>
	(await import("./serve.ts")).serve(...args);
