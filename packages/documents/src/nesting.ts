/**
 * The message about a document that is nested too deeply to be parsed or read, both of which is recursive, if that is the
 * error: the parser reports the overflow of the stack as any other.
 */
export function nestedTooDeeply(error: unknown): string | undefined {
	const isOverflow =
		error instanceof Error && error.message.includes("Maximum call stack size exceeded");
	return isOverflow ? "nested too deeply" : undefined;
}
