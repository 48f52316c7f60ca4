/** The exit codes, for scripts. README.md lists them in a table. */
export const exitCodes = {
	ok: 0,
	/** The server refused the request, or another failure without its own code. */
	failed: 1,
	/** Invalid flags, types, files or configuration; nothing was changed. */
	usage: 2,
	notFound: 3,
	/** A conflict with the stored state: the resource changed meanwhile, or is referenced. */
	conflict: 4,
	/** The token is missing or invalid, or lacks the right. */
	permission: 5,
	unreachable: 6,
	timeout: 7,
	/** `plinth diff`: something differs. */
	differs: 8,
	interrupted: 130,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
