import { describe, expect, it } from "vitest";
import { formatListenAddress, isLoopback, parseListenAddress } from "./listen-address.ts";

describe("parseListenAddress", () => {
	it.each([
		["127.0.0.1:7575", { host: "127.0.0.1", port: 7575 }],
		["localhost:0", { host: "localhost", port: 0 }],
		["[::1]:65535", { host: "::1", port: 65_535 }],
	])("reads %s, and writes it the same", (text, address) => {
		expect(parseListenAddress(text)).toEqual(address);
		expect(formatListenAddress(address)).toBe(text);
	});

	it.each([
		"",
		"7575",
		":7575",
		"localhost",
		"localhost:",
		"::1:7575",
		"[::1]",
		"[host]:1",
		"h:65536",
		"h:-1",
		"h:1x",
		"a b:1",
	])("refuses %j", (text) => {
		expect(parseListenAddress(text)).toBeUndefined();
	});
});

describe("isLoopback", () => {
	it.each(["127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1", "localhost"])("%s is", (host) => {
		expect(isLoopback({ host, port: 1 })).toBe(true);
	});

	it.each(["0.0.0.0", "::", "10.0.0.1", "example.com", "localhost.example.com", "128.0.0.1"])(
		"%s is not",
		(host) => {
			expect(isLoopback({ host, port: 1 })).toBe(false);
		},
	);
});
