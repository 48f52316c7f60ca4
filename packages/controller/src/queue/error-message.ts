/** After how many characters the message of an error is cut. */
const maxLength = 1_000;

/** The message of an error for reports, also of what is no `Error`, or has a message that is no text. */
export function messageOf(error: unknown): string {
	let message: string;
	try {
		message = String(error instanceof Error ? error.message || error.name : error);
	} catch {
		message = "an error without a message";
	}
	return message.length > maxLength ? `${message.slice(0, maxLength)}…` : message;
}

/** The stack of an error for reports; `undefined` if it has none that can be read. */
export function stackOf(error: unknown): string | undefined {
	try {
		return error instanceof Error && typeof error.stack === "string" ? error.stack : undefined;
	} catch {
		return undefined;
	}
}
