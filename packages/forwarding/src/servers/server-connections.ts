import type { ConnectionOptions as TlsOptions } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { Connection } from "@plinth/rpc-client/session";
import type { Runtime } from "@plinth/runtime";
import type { Connections, Place, Purpose } from "./server-network.ts";

/** The calls that share a connection, before another one is opened. */
const callsPerConnection = 128;

/** The calls of a connection to a server that has declared no limit on any: RFC 9113 recommends no smaller one. */
const callsBeforeSettings = 100;

/**
 * The bytes that a server may send ahead of a slow reader: for each call, and for all of a connection. The latter is enough
 * for all calls of a connection, so that those of clients that do not read hold up no others.
 */
const callWindowBytes = 64 * 1024;
const sessionWindowBytes = callsPerConnection * callWindowBytes;

const keepAlive = {
	pingIntervalMs: 10_000,
	pingTimeoutMs: 5_000,
	idleConnectionTimeoutMs: 60_000,
} as const;

const connectTimeoutMs = 5_000;

/** Options of `ServerConnections`. */
export interface ServerConnectionsOptions {
	/** Scheme, host and port. */
	readonly authority: string;
	readonly tls: TlsOptions;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	/** Called when the server accepts no new calls on a connection. */
	readonly onGoaway: () => void;
	/** The number of connections for calls of clients. */
	readonly maxConnections: number;
}

/** A connection and the number of its calls. */
interface Shared {
	readonly connection: Connection;
	calls: number;
}

/**
 * The connections to one server. A call goes to the one with the most calls that has room for another, so that those that
 * are not needed become idle and close. If all are full and there can be no further one, the call is refused.
 *
 * Invariant: for the calls of clients, there are at most `maxConnections`, and there is one for the checks that find no room on
 * these. The agent's own calls, which it limits itself, share none with them. None is opened while the server accepts no calls
 * on one that is open.
 */
export class ServerConnections implements Connections {
	readonly #authority: string;
	readonly #tls: TlsOptions;
	readonly #runtime: Pick<Runtime, "clock" | "random">;
	readonly #onGoaway: () => void;
	readonly #maxConnections: number;
	/** For the calls of clients, and for checks. */
	readonly #connections: Shared[] = [];
	/** For the agent's own calls. */
	readonly #own: Shared[] = [];
	/** For checks while the others are full. */
	#spare: Shared | undefined;
	/** The calls of a connection for which the server has declared no limit yet: no more than on the others. */
	#assumedLimit = callsBeforeSettings;

	constructor({ authority, tls, runtime, onGoaway, maxConnections }: ServerConnectionsOptions) {
		this.#authority = authority;
		this.#tls = tls;
		this.#runtime = runtime;
		this.#onGoaway = onGoaway;
		this.#maxConnections = maxConnections;
	}

	take(purpose: Purpose = "call"): Place {
		this.#assumeLimit();
		const connections = purpose === "own" ? this.#own : this.#connections;
		const shared = this.#fullestWithRoom(connections) ?? this.#add(purpose);
		if (shared === undefined) {
			return { session: () => Promise.reject(this.#noRoom()), leave: () => {} };
		}
		shared.calls += 1;
		return {
			session: () => shared.connection.current ?? shared.connection.ready(),
			leave: () => {
				shared.calls -= 1;
			},
		};
	}

	close(): void {
		for (const { connection } of this.#all) {
			connection.close(() => new ConnectError("the agent has stopped", Code.Unavailable));
		}
	}

	#fullestWithRoom(connections: readonly Shared[]): Shared | undefined {
		let fullest: Shared | undefined;
		for (const shared of connections) {
			const hasRoom = shared.calls < Math.min(this.#limitOf(shared), callsPerConnection);
			if (hasRoom && (fullest === undefined || shared.calls > fullest.calls)) {
				fullest = shared;
			}
		}
		return fullest;
	}

	get #all(): readonly Shared[] {
		const spare = this.#spare === undefined ? [] : [this.#spare];
		return [...this.#connections, ...this.#own, ...spare];
	}

	/** The smallest limit of calls on a connection. */
	get #limit(): number {
		return Math.min(...this.#all.map((shared) => this.#limitOf(shared)));
	}

	#limitOf(shared: Shared): number {
		return declaredLimit(shared) ?? this.#assumedLimit;
	}

	/** Calls beyond the limit would wait on their connection while others have room, or another server. */
	#assumeLimit(): void {
		const declared = this.#all.flatMap((shared) => declaredLimit(shared) ?? []);
		if (declared.length > 0) {
			// A server that accepted no calls may do so now: one call finds out.
			this.#assumedLimit = Math.max(1, Math.min(callsBeforeSettings, ...declared));
		}
	}

	/** Adds a connection, or returns the spare one; `undefined` if the call can't have one. */
	#add(purpose: Purpose): Shared | undefined {
		if (this.#all.length > 0 && this.#limit === 0) {
			return undefined;
		}
		if (purpose === "own") {
			const shared = this.#open();
			this.#own.push(shared);
			return shared;
		}
		if (this.#connections.length < this.#maxConnections) {
			const shared = this.#open();
			this.#connections.push(shared);
			return shared;
		}
		if (purpose === "check") {
			this.#spare ??= this.#open();
			return this.#spare;
		}
		return undefined;
	}

	#noRoom(): ConnectError {
		const limit = this.#limit;
		const message =
			limit === 0
				? `${this.#authority} accepts no calls: its limit of concurrent streams is 0`
				: `${this.#authority} accepts no more calls: its limit of concurrent streams is ${limit}, and the agent opens at most ${this.#maxConnections} connections to it`;
		return new ConnectError(message, Code.ResourceExhausted);
	}

	#open(): Shared {
		const { clock, random } = this.#runtime;
		const connection = new Connection(
			this.#authority,
			{ ...keepAlive, nodeOptions: this.#tls },
			clock,
			random,
			{ connectTimeoutMs, callWindowBytes, sessionWindowBytes, onGoaway: this.#onGoaway },
		);
		return { connection, calls: 0 };
	}
}

/** The calls that the server accepts on a connection; `undefined` if it is not open, or its SETTINGS have not arrived. */
function declaredLimit({ connection: { current } }: Shared): number | undefined {
	return current?.speaksHttp2 === true ? current.maxConcurrentCalls : undefined;
}
