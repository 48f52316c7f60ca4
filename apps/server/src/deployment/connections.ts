import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createPlinthTransport, type PlinthTransport } from "@plinth/rpc-client";

/** One connection to each of the other deployments, by address. */
export class Connections {
	readonly #interceptor: Interceptor;
	readonly #transports = new Map<string, PlinthTransport>();

	/** @param interceptor - intercepts each call. */
	constructor(interceptor: Interceptor) {
		this.#interceptor = interceptor;
	}

	/** A transport to an address. If the peer does not respond to pings, the connection is closed. */
	readonly open = (address: string): Transport => {
		let transport = this.#transports.get(address);
		if (transport === undefined) {
			const interceptors = [this.#interceptor];
			transport = createPlinthTransport({ baseUrl: address, interceptors, ...pings });
			this.#transports.set(address, transport);
		}
		return transport;
	};

	/** Ends all calls and connections. */
	close(): void {
		for (const transport of this.#transports.values()) {
			transport.close(new ConnectError("the server is stopping", Code.Unavailable));
		}
		this.#transports.clear();
	}
}

const pings = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;
