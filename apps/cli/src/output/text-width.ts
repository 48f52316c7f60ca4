import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

let stringWidth: typeof import("string-width")["default"] | undefined;

/** The number of columns that a text takes in a terminal. */
export function textWidth(text: string): number {
	if (/^[ -~]*$/.test(text)) {
		return text.length;
	}
	// Most texts are ASCII, and the tables of Unicode take longer to load than all else that prints a table.
	stringWidth ??= loadStringWidth();
	return stringWidth(text);
}

/** The text, cut to that many columns if it takes more. */
export function cutTo(text: string, width: number): string {
	if (textWidth(text) <= width) {
		return text;
	}
	let cut = "";
	let used = 0;
	for (const { segment } of new Intl.Segmenter().segment(text)) {
		used += textWidth(segment);
		if (used > width - 1) {
			break;
		}
		cut += segment;
	}
	return `${cut}…`;
}

function loadStringWidth(): typeof import("string-width")["default"] {
	const module: typeof import("string-width") = require("string-width");
	return module.default;
}
