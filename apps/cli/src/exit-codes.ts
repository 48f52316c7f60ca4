/** What the process tells its parent, for scripts. README.md has them as a table. */
export const exitCodes = {
	ok: 0,
	/** The server refused, or something failed that has no code of its own. */
	failed: 1,
	/** Wrong flags, files or configuration; nothing was changed. */
	usage: 2,
	notFound: 3,
	/** What is stored forbids it: it changed meanwhile, or is referenced. */
	conflict: 4,
	/** No token, a bad one, or one without the right. */
	permission: 5,
	unreachable: 6,
	timeout: 7,
	interrupted: 130,
} as const;

/** One of them. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
