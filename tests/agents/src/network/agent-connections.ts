import { EventEmitter } from "node:events";
import { constants, type OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Fields } from "@plinth/forwarding";
import type { Connections, Place } from "@plinth/forwarding/testing";
import type { Session } from "@plinth/rpc-client/session";
import type { Caller, Exchange } from "./exchange.ts";
import type { Link, Network } from "./network.ts";

/** A stream of an agent to a server: what the agent uses of Node's `ClientHttp2Stream`. */
class ServerStream extends EventEmitter implements Caller {
	readonly #exchange: Exchange;
	writable = true;
	closed = false;
	rstCode: number = constants.NGHTTP2_NO_ERROR;

	constructor(exchange: Exchange) {
		super();
		this.#exchange = exchange;
		exchange.caller = this;
	}

	write(chunk: Uint8Array): boolean {
		const waiting = this.#exchange.send(chunk);
		void waiting?.then(() => this.emit("drain"));
		return waiting === undefined;
	}

	end(chunk?: Uint8Array): void {
		this.writable = false;
		if (chunk !== undefined) {
			void this.#exchange.send(chunk);
		}
		this.#exchange.finish();
	}

	close(code: number): void {
		if (!this.closed) {
			this.#exchange.cancel();
			this.#close(code);
		}
	}

	pause(): void {
		this.#exchange.pause();
	}

	resume(): void {
		this.#exchange.resume();
	}

	responded(status: number, headers: Fields): void {
		this.emit("response", { ":status": status, ...headers });
	}

	received(bytes: Uint8Array): void {
		this.emit("data", Buffer.from(bytes));
	}

	ended(trailers: Fields): void {
		if (Object.keys(trailers).length > 0) {
			this.emit("trailers", trailers);
		}
		this.emit("end");
		if (!this.closed) {
			this.#close(constants.NGHTTP2_NO_ERROR);
		}
	}

	wasReset(code: number): void {
		this.#close(code);
	}

	lost(): void {
		this.#close(constants.NGHTTP2_INTERNAL_ERROR);
	}

	#close(code: number): void {
		this.writable = false;
		this.closed = true;
		this.rstCode = code;
		queueMicrotask(() => this.emit("close"));
	}
}

/** The connections of an agent to one server: one at a time, which all calls share. */
export class AgentConnections implements Connections {
	readonly #network: Network;
	readonly #server: string;
	readonly #onGoaway: () => void;
	#link: Link | undefined;
	#connecting: Promise<Link> | undefined;
	#isClosed = false;

	/** @param onGoaway - the server accepts no new calls on a connection. */
	constructor(network: Network, server: string, onGoaway: () => void) {
		this.#network = network;
		this.#server = server;
		this.#onGoaway = onGoaway;
	}

	take(): Place {
		return {
			session: () =>
				this.#link?.isReady ? sessionOver(this.#link) : this.#connect().then(sessionOver),
			leave: () => {},
		};
	}

	close(): void {
		this.#isClosed = true;
		this.#link?.lose();
	}

	#connect(): Promise<Link> {
		this.#connecting ??= this.#open().finally(() => {
			this.#connecting = undefined;
		});
		return this.#connecting;
	}

	async #open(): Promise<Link> {
		const link = await this.#network.connect(this.#server);
		if (this.#isClosed) {
			link.lose();
			throw new ConnectError("the agent has stopped", Code.Unavailable);
		}
		link.onDraining = this.#onGoaway;
		this.#link = link;
		return link;
	}
}

/** A connection as what the agent uses of a session. */
function sessionOver(link: Link): Session {
	const session: Pick<Session, "isReady" | "arrived" | "closed" | "hasExcluded" | "failureOf"> & {
		open(headers: OutgoingHttpHeaders): ServerStream;
	} = {
		get isReady() {
			return link.isReady;
		},
		open: ({ ":method": method, ":path": target, ":authority": _, ...headers }) => {
			const exchange = link.open({
				method: String(method),
				target: String(target),
				headers: Object.fromEntries(
					Object.entries(headers).map(([name, value]) => [name, String(value)]),
				),
			});
			const stream = new ServerStream(exchange);
			if (method === "GET") {
				exchange.finish();
			}
			return stream;
		},
		arrived: () => {},
		closed: () => {},
		hasExcluded: ({ rstCode }) => rstCode === constants.NGHTTP2_REFUSED_STREAM,
		failureOf: () => link.failure,
	};
	// A stream and a session have private parts, which the agent does not use.
	return session as unknown as Session;
}
