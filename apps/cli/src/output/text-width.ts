import { createRequire } from "node:module";

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

/** No more code units of a text are shown per column: it takes a second to measure a megabyte. */
const maxUnitsPerColumn = 16;

/** The text, cut to that many columns if it takes more, or has very many characters without a width. */
export function cutTo(text: string, width: number): string {
	const maxUnits = maxUnitsPerColumn * width;
	if (text.length <= maxUnits && textWidth(text) <= width) {
		return text;
	}
	let cut = "";
	let used = 0;
	for (const { segment } of new Intl.Segmenter().segment(text.slice(0, maxUnits).toWellFormed())) {
		used += textWidth(segment);
		if (used > width - 1) {
			break;
		}
		cut += segment;
	}
	return `${cut}…`;
}

function loadStringWidth(): typeof import("string-width")["default"] {
	const require = createRequire(import.meta.url);
	const module: typeof import("string-width") = require("string-width");
	return module.default;
}
