import { expect, it } from "vitest";
import { codeParts } from "./code-parts.ts";

it.each([
	["plain", [["plain", false]]],
	[
		"`/` if empty.",
		[
			["/", true],
			[" if empty.", false],
		],
	],
	[
		"a `b` c `d`",
		[
			["a ", false],
			["b", true],
			[" c ", false],
			["d", true],
		],
	],
	["one ` alone", [["one ` alone", false]]],
	["`over\nlines`", [["`over\nlines`", false]]],
	["", []],
])("%j has parts", (text, parts) => {
	expect(codeParts(text).map(({ part, isCode }) => [part, isCode])).toEqual(parts);
});
