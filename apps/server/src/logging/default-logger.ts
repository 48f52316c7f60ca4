import type { Logger } from "@plinth/runtime";
import { createLogger } from "./pino-logger.ts";

let logger: Logger | undefined;

/** The logger of servers that were given none: warnings and errors, to standard error. All of them share it. */
export function defaultLogger(): Logger {
	logger ??= createLogger({ level: "warn" });
	return logger;
}
