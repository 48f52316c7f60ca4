/** The maximum number of characters of a text of a user that a message repeats. */
const maxShown = 60;

/** The beginning of a long text. */
export function shortened(text: string): string {
	// A code point has at most two units. A whole file need not be split into its characters.
	const characters = [...text.slice(0, 2 * (maxShown + 1))];
	return characters.length > maxShown ? `${characters.slice(0, maxShown).join("")}…` : text;
}

/** The beginning of a text in quotes, with control characters escaped. */
export function quoted(text: string): string {
	return JSON.stringify(shortened(text)).replaceAll(
		/[\u007f-\u009f\u2028\u2029]/g,
		(each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
	);
}
