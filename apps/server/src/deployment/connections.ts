import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createPlinthTransport, type PlinthTransport } from "@plinth/rpc-client";

/** Of more addresses, the one that was not opened for the longest time is forgotten: it is of a server that is gone. */
const maxAddresses = 4_096;

/** How connections to other servers are pinged, and when idle ones are closed. */
export const peerPings = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;

/** One connection to each server of the other deployments, and to each of this one, by address. */
export class Connections {
	readonly #interceptor: Interceptor;
	readonly #transports = new Map<string, PlinthTransport>();

	/** @param interceptor - intercepts each call. */
	constructor(interceptor: Interceptor) {
		this.#interceptor = interceptor;
	}

	/**
	 * A transport to an address. If the peer does not respond to pings, the connection is closed.
	 *
	 * @param announced - the address that the server announces: with TLS, its certificate may be for the host name of that.
	 *   Default: `address`.
	 */
	readonly open = (address: string, announced: string = address): Transport => {
		const key = announced === address ? address : `${address} ${announced}`;
		const transport = this.#transports.get(key) ?? this.#create(address, announced);
		this.#transports.delete(key);
		this.#transports.set(key, transport);
		return transport;
	};

	#create(baseUrl: string, announced: string): PlinthTransport {
		const [longestUnused] = this.#transports;
		if (longestUnused !== undefined && this.#transports.size >= maxAddresses) {
			const [key, transport] = longestUnused;
			this.#transports.delete(key);
			transport.close(new ConnectError(`${key} is no longer called`, Code.Unavailable));
		}
		return createPlinthTransport({
			...{ baseUrl, interceptors: [this.#interceptor], ...peerPings },
			...(announced !== baseUrl && { nodeOptions: certifiedFor(baseUrl, announced) }),
		});
	}

	/** Ends all calls and connections. */
	close(): void {
		for (const transport of this.#transports.values()) {
			transport.close(new ConnectError("the server is stopping", Code.Unavailable));
		}
		this.#transports.clear();
	}
}

/** Accepts a certificate for the host of either address, and requests that of the announced one. */
function certifiedFor(address: string, announced: string): ConnectionOptions {
	const [host, announcedHost] = [hostOf(address), hostOf(announced)];
	return {
		// An IP address is no name by which a server could choose its certificate.
		servername: isIP(announcedHost) === 0 ? announcedHost : "",
		checkServerIdentity: (_, certificate) =>
			checkServerIdentity(host, certificate) && checkServerIdentity(announcedHost, certificate),
	};
}

/** The host of a URL. That of IPv6 is without its brackets. */
function hostOf(url: string): string {
	return new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
}
