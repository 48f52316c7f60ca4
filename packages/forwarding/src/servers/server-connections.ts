import type { ConnectionOptions as TlsOptions } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { Connection } from "@plinth/rpc-client/session";
import type { Runtime } from "@plinth/runtime";
import type { Connections, Place } from "./server-network.ts";

/** The calls that share a connection, before another one is opened. */
const callsPerConnection = 128;

/** The bytes that a server may send ahead of a slow reader: for each call, and for all of a connection. */
const callWindowBytes = 256 * 1024;
const sessionWindowBytes = 8 * 1024 * 1024;

const keepAlive = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;

const connectTimeoutMs = 5_000;

/** A connection and the number of its calls. */
interface Shared {
	readonly connection: Connection;
	calls: number;
}

/**
 * The connections to one server. A call goes to the one with the most calls that has room for another, so that those that
 * are not needed become idle and close.
 */
export class ServerConnections implements Connections {
	readonly #authority: string;
	readonly #tls: TlsOptions;
	readonly #runtime: Pick<Runtime, "clock" | "random">;
	readonly #onGoaway: () => void;
	readonly #connections: Shared[] = [];

	/** @param authority - scheme, host and port. */
	constructor(
		authority: string,
		tls: TlsOptions,
		runtime: Pick<Runtime, "clock" | "random">,
		onGoaway: () => void,
	) {
		this.#authority = authority;
		this.#tls = tls;
		this.#runtime = runtime;
		this.#onGoaway = onGoaway;
	}

	take(): Place {
		const shared = this.#fullestWithRoom() ?? this.#add();
		shared.calls += 1;
		return {
			session: () => shared.connection.current ?? shared.connection.ready(),
			leave: () => {
				shared.calls -= 1;
			},
		};
	}

	close(): void {
		for (const { connection } of this.#connections) {
			connection.close(() => new ConnectError("the agent has stopped", Code.Unavailable));
		}
	}

	#fullestWithRoom(): Shared | undefined {
		let fullest: Shared | undefined;
		for (const shared of this.#connections) {
			const limit = shared.connection.current?.maxConcurrentCalls ?? callsPerConnection;
			const hasRoom = shared.calls < Math.min(limit, callsPerConnection);
			if (hasRoom && (fullest === undefined || shared.calls > fullest.calls)) {
				fullest = shared;
			}
		}
		return fullest;
	}

	#add(): Shared {
		const { clock, random } = this.#runtime;
		const connection = new Connection(
			this.#authority,
			{ ...keepAlive, nodeOptions: this.#tls },
			clock,
			random,
			{ connectTimeoutMs, callWindowBytes, sessionWindowBytes, onGoaway: this.#onGoaway },
		);
		const shared: Shared = { connection, calls: 0 };
		this.#connections.push(shared);
		return shared;
	}
}
