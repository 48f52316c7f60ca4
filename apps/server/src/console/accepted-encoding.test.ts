import { describe, expect, it } from "vitest";
import { acceptedCoding, type ContentCoding } from "./accepted-encoding.ts";

const both = new Set<ContentCoding>(["br", "gzip"]);

describe("acceptedCoding", () => {
	it.each([
		[undefined, undefined],
		["", undefined],
		["gzip, deflate, br, zstd", "br"],
		["gzip", "gzip"],
		["GZIP;Q=0.5", "gzip"],
		["br;q=0.5, gzip;q=0.8", "gzip"],
		["br;q=0, gzip", "gzip"],
		["br;q=0, *;q=0.1", "gzip"],
		["*", "br"],
		["*;q=0", undefined],
		["identity, gzip;q=0.5", undefined],
		["br;q=2", undefined],
		["br;q=abc", undefined],
		[",;,br", "br"],
	] as const)("of %j is %j", (header, expected) => {
		expect(acceptedCoding(header, both)).toBe(expected);
	});

	it("is one of the available ones", () => {
		expect(acceptedCoding("br, gzip", new Set(["gzip"]))).toBe("gzip");
		expect(acceptedCoding("br, gzip", new Set())).toBe(undefined);
	});
});
