import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeCounts, describeTypes } from "./counted-types.ts";

describe("a description of counts", () => {
	it("names types in the order of their keys", () => {
		const counts = new Map([
			["demo.v2.B", 2],
			["demo.v2.A", 1],
		]);
		expect(describeCounts(counts)).toBe("1 demo.v2.A, 2 demo.v2.B");
		expect(describeTypes(counts)).toBe("demo.v2.A, demo.v2.B");
	});

	it("counts the types beyond the twelfth, and their resources", () => {
		const counts = new Map(Array.from({ length: 15 }, (_, at) => [`t${at + 10}.v1.T`, at]));
		expect(describeCounts(counts)).toMatch(/11 t21\.v1\.T, and 3 more types \(39 resources\)$/);
	});

	it("has a bounded length, and is the same for the same counts", () => {
		const keys = fc.uniqueArray(fc.string({ maxLength: 300 }), { maxLength: 200 });
		fc.assert(
			fc.property(keys, fc.nat(), (types, count) => {
				const counts = new Map(types.map((key) => [key, count]));
				const reversed = new Map([...counts].reverse());
				expect(describeCounts(counts).length).toBeLessThan(1_600);
				expect(describeCounts(reversed)).toBe(describeCounts(counts));
			}),
		);
	});
});
