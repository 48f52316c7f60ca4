import { expect, it } from "vitest";
import { formatOrder, parseOrder } from "./order-text.ts";

it.each([
	["", "name", false],
	["-name", "name", true],
	["-age", "age", true],
	["2", 2, false],
	["-0", 0, true],
] as const)("the order %j is by %s, descending: %s", (text, by, isDescending) => {
	expect(formatOrder({ by, isDescending })).toBe(text);
	expect(parseOrder(text || undefined)).toEqual({ by, isDescending });
});

it("is the default if a link names no column", () => {
	for (const text of ["constructor", "9999", "--age", "-", "1e3"]) {
		expect(parseOrder(text)).toEqual({ by: "name", isDescending: false });
	}
});
