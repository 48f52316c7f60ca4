import { Code, ConnectError } from "@connectrpc/connect";
import { createPlinthTransport, type PlinthTransport } from "@plinth/rpc-client";
import type { Clock } from "@plinth/runtime";
import { peerPings } from "../deployment/connections.ts";
import type { TlsMaterial } from "../listener/tls/tls-files.ts";

/** A longer response of another server is refused. In bytes. */
const maxResponseBytes = 16 * 1024 * 1024;

/** Options of `ServerConnections`. */
export interface ServerConnectionsOptions {
	readonly clock: Clock;
	/** The certificate that is presented to servers which require one of their clients, as it is now. */
	readonly tls: () => TlsMaterial | undefined;
}

/** One connection to each of the other servers of a cluster, by address. */
export class ServerConnections {
	readonly #options: ServerConnectionsOptions;
	readonly #open = new Map<
		string,
		{ readonly transport: PlinthTransport; readonly material: TlsMaterial | undefined }
	>();

	constructor(options: ServerConnectionsOptions) {
		this.#options = options;
	}

	/** A transport to an address. @throws TypeError if the address is not a URL. */
	open(address: string): PlinthTransport {
		const material = this.#options.tls();
		const open = this.#open.get(address);
		if (open !== undefined && open.material === material) {
			return open.transport;
		}
		// The certificate has been replaced.
		this.#close(address, "the connection is replaced");
		const transport = createPlinthTransport({
			...{ baseUrl: address, clock: this.#options.clock, readMaxBytes: maxResponseBytes },
			...peerPings,
			...(material && { nodeOptions: { cert: material.cert, key: material.key } }),
		});
		this.#open.set(address, { transport, material });
		return transport;
	}

	/** Closes the connections to all other addresses. */
	keepOnly(addresses: ReadonlySet<string>): void {
		for (const address of this.#open.keys()) {
			if (!addresses.has(address)) {
				this.#close(address, "the server is gone");
			}
		}
	}

	#close(address: string, reason: string): void {
		this.#open.get(address)?.transport.close(new ConnectError(reason, Code.Unavailable));
		this.#open.delete(address);
	}
}
