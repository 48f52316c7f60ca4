import { describe, expect, it } from "vitest";
import { labelProblem, namePrefixProblem } from "./names.ts";

describe("names", () => {
	it.each(["a", "0", "miles-davis", "a".repeat(63), "x--y"])("may be %s", (name) => {
		expect(labelProblem(name)).toBeUndefined();
	});

	it.each(["", "-a", "a-", "A", "a.b", "a_b", "a b", "ü", "a".repeat(64), "__proto__", "a\n"])(
		"may not be %j",
		(name) => {
			expect(labelProblem(name)).toMatch(/^must /);
		},
	);

	it("have any lower-case string as a prefix", () => {
		expect(namePrefixProblem("")).toBeUndefined();
		expect(namePrefixProblem("my-")).toBeUndefined();
		expect(namePrefixProblem("My")).toBe("must be lower-case");
	});
});
