import { lookup, resolveSrv } from "node:dns/promises";

/** Looks names up. */
export interface Resolver {
	/** All IP addresses of a host: of IPv4 and IPv6. @throws Error if there are none. */
	addresses(host: string): Promise<readonly string[]>;
	/** The hosts and ports of the SRV records of a name. @throws Error if there are none. */
	services(name: string): Promise<readonly { readonly host: string; readonly port: number }[]>;
}

/** Uses the resolver of the operating system, with its file of hosts, and for SRV records its name servers. */
export const systemResolver: Resolver = {
	async addresses(host) {
		const found = await lookup(host, { all: true, order: "verbatim" });
		return found.map(({ address }) => address);
	},
	async services(name) {
		const found = await resolveSrv(name);
		return found.map(({ name: host, port }) => ({ host, port }));
	},
};
