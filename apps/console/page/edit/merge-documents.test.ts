import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeDocuments, withValue } from "./merge-documents.ts";

const base = { type: "demo.v1.Film", data: { title: "Alien", year: 1979, cast: ["a", "b"] } };

describe("mergeDocuments", () => {
	it("has the changes of both sides", () => {
		const mine = { ...base, data: { ...base.data, title: "Aliens" } };
		const theirs = { ...base, data: { title: "Alien", cast: ["a"], seen: true } };
		expect(mergeDocuments(base, mine, theirs)).toEqual({
			document: { type: "demo.v1.Film", data: { title: "Aliens", cast: ["a"], seen: true } },
			conflicts: [],
		});
	});

	it("keeps my value of a field that both have changed, and names it", () => {
		const mine = withValue(base, ["data", "year"], 1986);
		const theirs = withValue(withValue(base, ["data", "year"], undefined), ["data", "cast"], []);
		const { document, conflicts } = mergeDocuments(base, mine, theirs);
		expect(document).toEqual({ ...base, data: { title: "Alien", year: 1986, cast: [] } });
		expect(conflicts).toEqual([{ path: ["data", "year"], mine: 1986 }]);
	});

	it("does not merge lists", () => {
		const mine = withValue(base, ["data", "cast"], ["a", "b", "c"]);
		const theirs = withValue(base, ["data", "cast"], ["b"]);
		expect(mergeDocuments(base, mine, theirs).conflicts).toEqual([
			{ path: ["data", "cast"], mine: ["a", "b", "c"], theirs: ["b"] },
		]);
	});

	it("takes keys such as __proto__ for what they are", () => {
		const hostile = JSON.parse('{"metadata":{"__proto__":"x"}}') as JsonObject;
		const merged = mergeDocuments({}, hostile, {}).document;
		expect(JSON.stringify(merged)).toBe('{"metadata":{"__proto__":"x"}}');
	});
});

const document: fc.Arbitrary<JsonObject> = fc.dictionary(
	fc.constantFrom("a", "b", "c", "__proto__"),
	fc.oneof(
		fc.constantFrom(1, 2, "x", null),
		fc.array(fc.constantFrom(1, 2), { maxLength: 2 }),
		fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom(1, 2, 3)),
	),
);

describe("mergeDocuments, of any documents", () => {
	it("is what one side has if the other has changed nothing", () => {
		fc.assert(
			fc.property(document, document, (before, after) => {
				expect(mergeDocuments(before, after, before)).toEqual({ document: after, conflicts: [] });
				expect(mergeDocuments(before, before, after)).toEqual({ document: after, conflicts: [] });
			}),
		);
	});

	it("finds the same conflicts from both sides", () => {
		fc.assert(
			fc.property(document, document, document, (before, mine, theirs) => {
				const paths = (result: ReturnType<typeof mergeDocuments>) =>
					result.conflicts.map(({ path }) => path.join("/")).sort();
				expect(paths(mergeDocuments(before, mine, theirs))).toEqual(
					paths(mergeDocuments(before, theirs, mine)),
				);
			}),
		);
	});
});
