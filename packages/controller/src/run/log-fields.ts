import type { Logger } from "@plinth/runtime";

/** A logger that adds fields to each line. */
export function withFields(logger: Logger, fields: Readonly<Record<string, unknown>>): Logger {
	return {
		debug: (more, message) => logger.debug({ ...fields, ...more }, message),
		info: (more, message) => logger.info({ ...fields, ...more }, message),
		warn: (more, message) => logger.warn({ ...fields, ...more }, message),
		error: (more, message) => logger.error({ ...fields, ...more }, message),
	};
}
