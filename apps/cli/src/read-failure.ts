/** Why a file could not be read, in words. */
export function readFailure(cause: unknown): string {
	if (cause instanceof Error && "code" in cause) {
		const known: Record<string, string> = {
			ENOENT: "no such file",
			EISDIR: "it is a directory",
			EACCES: "permission denied",
		};
		return known[String(cause.code)] ?? cause.message;
	}
	return String(cause);
}
