import { BlockList, isIP } from "node:net";
import { hostname } from "node:os";
import { formatListenAddress, type ListenAddress } from "../configuration/listen-address.ts";
import { ListenError } from "../listener/listen-error.ts";

const wildcards = new BlockList();
wildcards.addAddress("0.0.0.0", "ipv4");
wildcards.addAddress("::", "ipv6");

/**
 * The URL at which the other servers of a cluster reach a listener, if none is configured: that of the address on which it
 * listens or, if that is a wildcard, the host name and the port.
 *
 * @param machine - the host name of the machine.
 */
export function defaultAdvertisedAddress(
	scheme: "http" | "https",
	{ host, port }: ListenAddress,
	machine = hostname(),
): string {
	return `${scheme}://${formatListenAddress({ host: isWildcard(host) ? machine : host, port })}`;
}

/**
 * The host name of the advertised address of a listener; `undefined` if that is an IP address.
 *
 * @param machine - the host name of the machine.
 * @throws ListenError if none is configured, and the host name of the machine, such as `plinth.1`, can't be part of a URL.
 */
export function advertisedHostName(
	configured: string | undefined,
	listen: ListenAddress,
	machine = hostname(),
): string | undefined {
	const address = configured ?? defaultAdvertisedAddress("http", listen, machine);
	const host = URL.parse(address)?.hostname;
	if (host === undefined) {
		throw new ListenError(
			`the other servers of the cluster can't call this one at ${address}, which is not a valid URL: set --advertised-address to a URL at which they reach it`,
		);
	}
	return isIP(host) !== 0 || host.startsWith("[") ? undefined : host;
}

/** Whether a listener on that host is reached at all addresses of the machine. */
export function isWildcard(host: string): boolean {
	const family = isIP(host);
	return family !== 0 && wildcards.check(host, family === 6 ? "ipv6" : "ipv4");
}
