import { describe, expect, it } from "vitest";
import { assertWellFormedType, familyKey, gvkKey, sameType } from "./gvk.ts";

const artist = { group: "demo", groupVersion: "v2", kind: "Artist" };

describe("type names", () => {
	it("are written as group, group version and kind", () => {
		expect(gvkKey(artist)).toBe("demo.v2.Artist");
		expect(familyKey(artist)).toBe("demo.Artist");
	});

	it("are the same only in all three parts", () => {
		expect(sameType(artist, { ...artist })).toBe(true);
		expect(sameType(artist, { ...artist, groupVersion: "v1" })).toBe(false);
		expect(sameType(undefined, undefined)).toBe(true);
		expect(sameType(artist, undefined)).toBe(false);
	});

	it.each([
		["group", { group: "Demo" }],
		["group", { group: "d" }],
		["group version", { groupVersion: "2" }],
		["group version", { groupVersion: "v1beta" }],
		["kind", { kind: "artist" }],
		["kind", { kind: "A" }],
	])("name the malformed %s: %o", (part, change) => {
		expect(() => assertWellFormedType({ ...artist, ...change })).toThrow(`: ${part} "`);
	});

	it.each([{ groupVersion: "v1alpha1" }, { groupVersion: "v10" }, { group: "my_demo" }])(
		"accept %o",
		(change) => {
			assertWellFormedType({ ...artist, ...change });
		},
	);
});
