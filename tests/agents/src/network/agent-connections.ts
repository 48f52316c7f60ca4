import { Code, ConnectError } from "@connectrpc/connect";
import type { Fields } from "@plinth/forwarding";
import type { Connections, Place } from "@plinth/forwarding/testing";
import {
	errorCode,
	type Http2ClientStream,
	type ResetOrigin,
	type ResponseHandler,
	type Fields as WireFields,
} from "@plinth/http2";
import type { Session } from "@plinth/rpc-client/session";
import type { Caller, Exchange } from "./exchange.ts";
import type { Link, Network } from "./network.ts";

/** The bytes that a server may send ahead of the agent. */
const windowBytes = 1_000;

/** A stream of an agent to a server. */
class ServerStream implements Http2ClientStream, Caller {
	readonly id = 1;
	readonly unsentBytes = 0;
	readonly #exchange: Exchange;
	readonly #handler: ResponseHandler;
	isLocalEnded = false;
	isClosed = false;
	#unconsumed = 0;

	constructor(exchange: Exchange, handler: ResponseHandler) {
		this.#exchange = exchange;
		this.#handler = handler;
		exchange.caller = this;
	}

	write(chunk: Uint8Array): boolean {
		const waiting = this.#exchange.send(chunk);
		void waiting?.then(() => this.isClosed || this.#handler.onDrain?.());
		return waiting === undefined;
	}

	end(chunk?: Uint8Array): void {
		if (chunk !== undefined) {
			void this.#exchange.send(chunk);
		}
		this.isLocalEnded = true;
		this.#exchange.finish();
	}

	reset(code: number): void {
		if (!this.isClosed) {
			this.isClosed = true;
			this.#exchange.cancel();
			this.#handler.onReset(code, "local");
		}
	}

	consume(bytes: number): void {
		this.#unconsumed -= bytes;
		if (this.#unconsumed <= windowBytes) {
			this.#exchange.resume();
		}
	}

	responded(status: number, headers: Fields): void {
		this.#handler.onHead(status, Object.entries(headers).flat());
	}

	received(bytes: Uint8Array): void {
		this.#unconsumed += bytes.length;
		if (this.#unconsumed > windowBytes) {
			this.#exchange.pause();
		}
		this.#handler.onData(Buffer.from(bytes));
	}

	ended(trailers: Fields): void {
		this.#handler.onEnd(Object.entries(trailers).flat());
		if (!this.isClosed) {
			this.isClosed = true;
			queueMicrotask(() => this.#handler.onFinish?.());
		}
	}

	wasReset(code: number): void {
		this.#close(code, "peer");
	}

	lost(): void {
		this.#close(errorCode.internalError, "connection");
	}

	#close(code: number, origin: ResetOrigin): void {
		if (!this.isClosed) {
			this.isClosed = true;
			queueMicrotask(() => this.#handler.onReset(code, origin));
		}
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
	const session: Pick<
		Session,
		"isReady" | "scheme" | "host" | "open" | "arrived" | "closed" | "failure"
	> = {
		scheme: "http",
		host: "server",
		get isReady() {
			return link.isReady;
		},
		open: (fields, handler) => new ServerStream(link.open(requestOf(fields)), handler),
		arrived: () => {},
		closed: () => {},
		get failure() {
			return link.failure;
		},
	};
	// A session has private parts, which the agent does not use.
	return session as Session;
}

function requestOf(fields: WireFields) {
	const all: Record<string, string> = {};
	for (let index = 0; index < fields.length; index += 2) {
		all[fields[index] ?? ""] = fields[index + 1] ?? "";
	}
	const {
		":method": method = "",
		":path": target = "",
		":authority": _,
		":scheme": __,
		...headers
	} = all;
	return { method, target, headers };
}
