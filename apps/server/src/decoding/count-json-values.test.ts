import { fromJsonString } from "@bufbuild/protobuf";
import { FieldMaskSchema, Int64ValueSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countJsonValues } from "./count-json-values.ts";

function count(text: string, limit = Number.POSITIVE_INFINITY, fieldMasks = false): number {
	return countJsonValues(Buffer.from(text), limit, fieldMasks);
}

/** How many members and elements parsed JSON has, at all depths. */
function valuesIn(json: unknown): number {
	if (typeof json !== "object" || json === null) {
		return 0;
	}
	const inner = Object.values(json);
	return inner.reduce((sum: number, each) => sum + valuesIn(each), inner.length);
}

describe("counting the values of JSON", () => {
	it("agrees with what is parsed, however it is written", () => {
		fc.assert(
			fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 1, "\t"), (json, indent) => {
				expect(count(JSON.stringify(json, null, indent))).toBe(valuesIn(json));
			}),
			{ numRuns: 500 },
		);
	});

	it("finds the ends of strings, long and short, however they are escaped", () => {
		const part = fc.constantFrom("\\", '"', "\\\\", '\\"', "x".repeat(40), ",", "é", "\n");
		const string = fc.array(part, { maxLength: 30 }).map((parts) => parts.join(""));
		fc.assert(
			fc.property(fc.array(string, { maxLength: 8 }), (strings) => {
				expect(count(JSON.stringify(strings))).toBe(strings.length);
			}),
			{ numRuns: 1_000 },
		);
	});

	it("never fails, and never counts less than is parsed, whatever the bytes", () => {
		const token = fc.constantFrom(
			...[
				'"',
				"\\",
				",",
				":",
				"{",
				"}",
				"[",
				"]",
				" ",
				"1",
				"a",
				"\\u0022",
				'"k":',
				"\n",
				"é",
				"null",
			],
		);
		fc.assert(
			fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
				const text = tokens.join("");
				const counted = count(text);
				let json: unknown;
				try {
					json = JSON.parse(text);
				} catch {
					return;
				}
				expect(counted).toBeGreaterThanOrEqual(valuesIn(json));
			}),
			{ numRuns: 5_000 },
		);
		fc.assert(
			fc.property(fc.uint8Array(), (bytes) => {
				expect(countJsonValues(bytes, 10, true)).toBeLessThanOrEqual(11);
			}),
		);
	});

	it.each([
		['{"a":1,"a":2}', 2],
		['"\\",\\\\"', 0],
		['["\\\\",1]', 2],
		['{"a,b":"[{,"}', 1],
		["[[],{},[ \n ]]", 3],
		['["', 1],
		["", 0],
	])("counts %j", (text, expected) => {
		expect(count(text)).toBe(expected);
	});

	it("counts 100,000 levels without recursion, where the decoder stops at 100", () => {
		const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
		expect(count(deep)).toBe(99_999);
		expect(() => fromJsonString(ValueSchema, deep)).toThrow(
			"maximum recursion depth of 100 reached",
		);
	});

	it("stops past the limit", () => {
		expect(count("[1,1,1,1,1,1]", 3)).toBe(4);
	});

	it("counts the paths of field masks where there can be some", () => {
		const mask = '"a,b,c"';
		expect(fromJsonString(FieldMaskSchema, mask).paths).toHaveLength(3);
		expect(count(mask, 10, true)).toBe(2);
		expect(count(mask, 10, false)).toBe(0);
	});

	it("counts the digits of a run that is longer than any number, whatever surrounds it", () => {
		const number = `"\\n\\n-${"9".repeat(5_000)}  "`;
		expect(() => fromJsonString(Int64ValueSchema, number)).toThrow();
		expect(count(number)).toBe(5_000);
		expect(count(`"${"12345678,".repeat(1_000)}"`)).toBe(0);
	});
});
