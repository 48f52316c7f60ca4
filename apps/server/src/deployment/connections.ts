import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";

/** One connection to each of the other deployments, by address. */
export class Connections {
	readonly #interceptor: Interceptor;
	readonly #sessions = new Map<string, Http2SessionManager>();

	/** @param interceptor - intercepts each call. */
	constructor(interceptor: Interceptor) {
		this.#interceptor = interceptor;
	}

	/** A transport to an address. If the peer does not respond to pings, the connection is closed. */
	readonly open = (address: string): Transport => {
		let sessionManager = this.#sessions.get(address);
		if (sessionManager === undefined) {
			sessionManager = new Http2SessionManager(address, pings);
			this.#sessions.set(address, sessionManager);
		}
		return createConnectTransport({
			baseUrl: address,
			httpVersion: "2",
			sessionManager,
			interceptors: [this.#interceptor],
		});
	};

	/** Ends all calls and connections. */
	close(): void {
		for (const session of this.#sessions.values()) {
			session.abort(new ConnectError("the server is stopping", Code.Unavailable));
		}
		this.#sessions.clear();
	}
}

const pings = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;
