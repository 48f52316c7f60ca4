import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { advertisedHostName, defaultAdvertisedAddress } from "./advertised-address.ts";

describe("the advertised address of a listener", () => {
	it.each([
		[{ host: "127.0.0.1", port: 7575 }, "http://127.0.0.1:7575"],
		[{ host: "fd00::1", port: 7575 }, "http://[fd00::1]:7575"],
		[{ host: "plinth.example", port: 80 }, "http://plinth.example:80"],
		[{ host: "0.0.0.0", port: 7575 }, `http://${hostname()}:7575`],
		[{ host: "::", port: 7575 }, `http://${hostname()}:7575`],
	])("of %o is %s by default", (listen, address) => {
		expect(defaultAdvertisedAddress("http", listen)).toBe(address);
	});

	it("has a host name, unless it is an IP address", () => {
		const loopback = { host: "127.0.0.1", port: 7575 };
		expect(advertisedHostName("https://A.example:1", loopback)).toBe("a.example");
		expect(advertisedHostName("http://10.0.0.1:7575", loopback)).toBeUndefined();
		expect(advertisedHostName("http://[fd00::1]:7575", loopback)).toBeUndefined();
		expect(advertisedHostName(undefined, loopback)).toBeUndefined();
		expect(advertisedHostName(undefined, { host: "::", port: 1 })).toBe(hostname().toLowerCase());
	});

	it("has to be configured if the host name can't be part of a URL", () => {
		const listen = { host: "0.0.0.0", port: 7575 };
		expect(() => advertisedHostName(undefined, listen, "plinth.1")).toThrow(
			"the other servers of the cluster can't call this one at http://plinth.1:7575, which is not a valid URL: set --advertised-address to a URL at which they reach it",
		);
		expect(advertisedHostName("http://one.example:7575", listen, "plinth.1")).toBe("one.example");
	});
});
