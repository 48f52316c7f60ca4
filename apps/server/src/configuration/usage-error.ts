/** The command line is not valid. The message names the flag or value, and what to do. */
export class UsageError extends Error {
	override readonly name = "UsageError";
}
