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

function loadStringWidth(): typeof import("string-width")["default"] {
	const module: typeof import("string-width") = require("string-width");
	return module.default;
}
