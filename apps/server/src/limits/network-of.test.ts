import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { networkOf } from "./network-of.ts";

describe("the network of an address", () => {
	it.each([
		["10.0.0.1", "10.0.0.1"],
		["::ffff:10.0.0.1", "10.0.0.1"],
		["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
		["2001:DB8::1", "2001:db8:0:0"],
		["::1", "0:0:0:0"],
		["1:2:3::", "1:2:3:0"],
		["fe80::1%eth0", "fe80:0:0:0"],
		["an agent's own name", "an agent's own name"],
		["", ""],
	])("%s is in %s", (address, network) => {
		expect(networkOf(address)).toBe(network);
	});

	it("does not depend on the last 64 bits of an address of IPv6, nor on how it is written", () => {
		const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
		fc.assert(
			fc.property(
				fc.array(group, { minLength: 4, maxLength: 4 }),
				fc.array(group, { minLength: 4, maxLength: 4 }),
				(network, host) => {
					const hex = (groups: readonly number[]) => groups.map((each) => each.toString(16));
					const written = hex([...network, ...host]).join(":");
					const short = new URL(`http://[${written}]`).hostname.slice(1, -1);
					const expected = hex(network).join(":");
					expect([networkOf(written), networkOf(short)]).toEqual([expected, expected]);
				},
			),
		);
	});
});
