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

/** One connection to each server of the other deployments, by address. */
export class Connections {
	readonly #interceptor: Interceptor;
	readonly #transports = new Map<string, PlinthTransport>();

	/** @param interceptor - intercepts each call. */
	constructor(interceptor: Interceptor) {
		this.#interceptor = interceptor;
	}

	/** A transport to an address. If the peer does not respond to pings, the connection is closed. */
	readonly open = (address: string): Transport => {
		const transport = this.#transports.get(address) ?? this.#create(address);
		this.#transports.delete(address);
		this.#transports.set(address, transport);
		return transport;
	};

	#create(baseUrl: string): PlinthTransport {
		const [longestUnused] = this.#transports;
		if (longestUnused !== undefined && this.#transports.size >= maxAddresses) {
			const [address, transport] = longestUnused;
			this.#transports.delete(address);
			transport.close(new ConnectError(`${address} is no longer called`, Code.Unavailable));
		}
		return createPlinthTransport({ baseUrl, interceptors: [this.#interceptor], ...peerPings });
	}

	/** Ends all calls and connections. */
	close(): void {
		for (const transport of this.#transports.values()) {
			transport.close(new ConnectError("the server is stopping", Code.Unavailable));
		}
		this.#transports.clear();
	}
}
