/** The command line is wrong. Its message names the flag or value, and the way out. */
export class UsageError extends Error {
	override readonly name = "UsageError";
}
