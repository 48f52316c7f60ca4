import { describe, expect, it } from "vitest";
import { isLoopbackName, parseHost, parseHostName, parseOrigin } from "./host-header.ts";

describe("a Host header", () => {
	it.each([
		["localhost", "name", "localhost", ""],
		["LocalHost:7575", "name", "localhost", "7575"],
		["localhost.", "name", "localhost", ""],
		["my_service:80", "name", "my_service", "80"],
		["127.0.0.1:7575", "address", "127.0.0.1", "7575"],
		["[::1]", "address", "[::1]", ""],
		["[::FFFF:127.0.0.1]:1", "address", "[::ffff:127.0.0.1]", "1"],
		// Browsers send these as 127.0.0.1, so that in a Host they are names.
		["0x7f.1", "name", "0x7f.1", ""],
		["127.1", "name", "127.1", ""],
		["2130706433", "name", "2130706433", ""],
		["127.0.0.01", "name", "127.0.0.01", ""],
		["127.0.0.1.", "name", "127.0.0.1", ""],
		["127.0.0.1.nip.io", "name", "127.0.0.1.nip.io", ""],
		["localhost.evil.example", "name", "localhost.evil.example", ""],
	])("%s is parsed", (value, kind, name, port) => {
		expect(parseHost(value)).toEqual({ kind, name, port });
	});

	it.each([
		...["", " ", ".", "..", "localhost..", ".localhost", ":7575", "localhost:", "localhost:65536"],
		...["user@localhost", "localhost@evil.example", "localhost/evil", "localhost?", "localhost#"],
		...[
			"http://localhost",
			"localhost, evil.example",
			"localhost evil",
			"ｌocalhost",
			"local%68ost",
		],
		...["[::1", "::1", "[::1%25lo]", "[127.0.0.1]", "[v1.x]", "localhost:0x1", "localhost\\evil"],
	])("%j is malformed", (value) => {
		expect(parseHost(value)).toBeUndefined();
	});

	it("means this machine if it is localhost, or below it", () => {
		expect(["localhost", "app.localhost"].map(isLoopbackName)).toEqual([true, true]);
		expect(["localhost.example", "notlocalhost", "127.0.0.1.nip.io"].some(isLoopbackName)).toBe(
			false,
		);
	});
});

describe("what is configured", () => {
	it("of hosts are names without a port", () => {
		expect(parseHostName("Plinth.Example.")).toBe("plinth.example");
		for (const wrong of ["plinth.example:80", "http://plinth.example", "*.example", "*", ""]) {
			expect(parseHostName(wrong), wrong).toBeUndefined();
		}
	});

	it("of origins is what browsers send", () => {
		expect(parseOrigin("HTTPS://Console.Example:443/")).toBe("https://console.example");
		expect(parseOrigin("http://localhost:3000")).toBe("http://localhost:3000");
		for (const wrong of [
			...["*", "null", "console.example", "https://*.example", "https://a.example/path", "file://"],
			...[
				"https://user@a.example",
				"https://a.example?x",
				"chrome-extension://abc",
				"https:a.example",
			],
		]) {
			expect(parseOrigin(wrong), wrong).toBeUndefined();
		}
	});
});
