import { describe, expect, it } from "vitest";
import { codeFrame } from "./code-frame.ts";

const source = "one\ntwo\n\tthree = four;\nfive\nsix\nseven\n";

describe("a code frame", () => {
	it("shows the lines around the position, and points to it", () => {
		expect(codeFrame(source, { line: 3, column: 10, length: 4 })).toBe(
			[
				"    1 | one",
				"    2 | two",
				"  > 3 |   three = four;",
				"      |           ^^^^",
				"    4 | five",
				"    5 | six",
			].join("\n"),
		);
	});

	it("at the begin and the end has fewer lines, and no arrow without a column", () => {
		expect(codeFrame(source, { line: 1 })).toBe(
			"  > 1 | one\n    2 | two\n    3 |   three = four;",
		);
		expect(codeFrame(source, { line: 6, column: 1 })).toBe(
			"    4 | five\n    5 | six\n  > 6 | seven\n      | ^",
		);
	});

	it("aligns numbers, and keeps the arrow within the line and one after it", () => {
		const lines = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`).join("\n");
		expect(codeFrame(lines, { line: 10, column: 8, length: 9 })).toBe(
			[
				"     8 | line 8",
				"     9 | line 9",
				"  > 10 | line 10",
				"       |        ^",
				"    11 | line 11",
				"    12 | line 12",
			].join("\n"),
		);
	});
});
