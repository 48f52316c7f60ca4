// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const control = /[\u0000-\u001f\u007f-\u009f]+/g;

/** Text from a server on one line, without control characters for the terminal. */
export function oneLine(text: string): string {
	return text.replace(control, " ");
}

/** Like `oneLine` for several lines: keeps line ends and tabs. */
export function printable(text: string): string {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
	return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g, " ");
}
