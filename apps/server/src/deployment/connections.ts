import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createPlinthTransport, type PlinthTransport } from "@plinth/rpc-client";
import { CountedTransport } from "./counted-transport.ts";

/** Of more addresses, those that were not called for the longest time are forgotten: they are of servers that are gone. */
const defaultMaxAddresses = 4_096;

/** How connections to other servers are pinged, and when idle ones are closed. */
export const peerPings = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;

/** The connection to one server, and its calls. */
interface Connection {
	readonly transport: PlinthTransport;
	readonly calls: CountedTransport;
}

/**
 * One connection to each server of the other deployments, and to each of this one, by address.
 *
 * Invariant: a connection with running calls is not closed to make room for others, and a transport that was opened once
 * can be used for ever: its next call opens the connection again.
 */
export class Connections {
	readonly #interceptor: Interceptor;
	readonly #maxAddresses: number;
	/** The one that was called last is the last one. */
	readonly #connections = new Map<string, Connection>();
	#isClosed = false;

	/**
	 * @param interceptor - intercepts each call.
	 * @param maxAddresses - the number of connections from which on idle ones are closed for others.
	 */
	constructor(interceptor: Interceptor, maxAddresses = defaultMaxAddresses) {
		this.#interceptor = interceptor;
		this.#maxAddresses = maxAddresses;
	}

	/**
	 * A transport to an address. If the peer does not respond to pings, the connection is closed. Never throws: calls to a
	 * malformed address fail with Unavailable.
	 *
	 * @param announced - the address that the server announces: with TLS, its certificate may be for the host name of that.
	 *   Default: `address`.
	 */
	readonly open = (address: string, announced: string = address): Transport => ({
		unary: async (...call) => this.#to(address, announced).unary(...call),
		stream: async (...call) => this.#to(address, announced).stream(...call),
	});

	#to(address: string, announced: string): Transport {
		const key = announced === address ? address : `${address} ${announced}`;
		const connection = this.#connections.get(key) ?? this.#create(address, announced);
		this.#connections.delete(key);
		this.#connections.set(key, connection);
		return connection.calls;
	}

	/** @throws ConnectError Unavailable if an address is malformed, or the connections are closed. */
	#create(baseUrl: string, announced: string): Connection {
		if (this.#isClosed) {
			throw stopping();
		}
		const transport = this.#connect(baseUrl, announced);
		this.#makeRoom();
		return { transport, calls: new CountedTransport(transport) };
	}

	#connect(baseUrl: string, announced: string): PlinthTransport {
		try {
			return createPlinthTransport({
				...{ baseUrl, interceptors: [this.#interceptor], ...peerPings },
				...(announced !== baseUrl && { nodeOptions: certifiedFor(baseUrl, announced) }),
			});
		} catch {
			throw new ConnectError(`"${baseUrl}" is not the address of a server`, Code.Unavailable);
		}
	}

	/** Forgets the addresses that were not called for the longest time, but none with running calls. */
	#makeRoom(): void {
		for (const [key, { transport, calls }] of this.#connections) {
			if (this.#connections.size < this.#maxAddresses) {
				return;
			}
			if (calls.isIdle) {
				this.#connections.delete(key);
				transport.close(new ConnectError(`${key} is no longer called`, Code.Unavailable));
			}
		}
	}

	/** Ends all calls and connections. Later calls fail. */
	close(): void {
		this.#isClosed = true;
		for (const { transport } of this.#connections.values()) {
			transport.close(stopping());
		}
		this.#connections.clear();
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

function stopping(): ConnectError {
	return new ConnectError("the server is stopping", Code.Unavailable);
}
