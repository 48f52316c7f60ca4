import { describe, expect, it } from "vitest";
import { maxDiscovered } from "./discovery.ts";
import { parseServerList } from "./server-list.ts";

function parse(content: string): readonly string[] {
	return parseServerList("servers", content).map(({ address }) => address);
}

describe("a file with servers", () => {
	it("has one address per line, with comments", () => {
		const content = "# all\n\na:7575\r\n  https://b.example:7575 # with TLS\na:7575\n[::1]:80";
		expect(parse(content)).toEqual(["http://a:7575", "https://b.example:7575", "http://[::1]"]);
	});

	it.each([
		["a:7575\n\nb", /^servers:3: "b" is not the address of a server: write one per line/],
		["a:1,b:1", /^servers:1: "a:1,b:1" is not/],
		["\u0000", /^servers:1: /],
		[`${"a".repeat(1_000)}`, /^servers:1: "a{100}" is not/],
		["# a:7575\n", /^servers has no addresses/],
		["", /^servers has no addresses/],
	])("%j is refused", (content, message) => {
		expect(() => parse(content)).toThrow(message);
	});

	it("has a limit", () => {
		const lines = (count: number) =>
			Array.from({ length: count }, (_, at) => `a${at}:1`).join("\n");
		expect(parse(lines(maxDiscovered))).toHaveLength(maxDiscovered);
		expect(() => parse(lines(maxDiscovered + 1))).toThrow(/^servers:101: there are more than 100/);
	});
});
