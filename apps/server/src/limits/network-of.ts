import { isIPv6 } from "node:net";

/**
 * What one client may have all addresses of: an address of IPv4, also in the form that a socket for both versions reports, or
 * the first 64 bits of one of IPv6. Anything else is returned as it is.
 */
export function networkOf(address: string): string {
	const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
	if (mapped !== undefined || !isIPv6(address)) {
		return mapped ?? address;
	}
	// A URL has the canonical form, and no zone.
	const { hostname } = new URL(`http://[${address.split("%")[0]}]`);
	const [start, end] = hostname.slice(1, -1).split("::");
	const groupsOf = (part = "") => part.split(":").filter((group) => group !== "");
	const [first, last] = [groupsOf(start), groupsOf(end)];
	const zeros = Array.from({ length: 8 - first.length - last.length }, () => "0");
	return [...first, ...zeros, ...last].slice(0, 4).join(":");
}
