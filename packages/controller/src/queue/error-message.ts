/** After how many characters the message of an error is cut. */
const maxLength = 1_000;

/** The message of an error for reports, also of what is no `Error`. */
export function messageOf(error: unknown): string {
	const message = error instanceof Error ? error.message || error.name : String(error);
	return message.length > maxLength ? `${message.slice(0, maxLength)}…` : message;
}
