/** A call that a test forwards, a Write unless it is another, and the streams to its servers. */
import { Code, ConnectError } from "@connectrpc/connect";
import { errorCode, type Http2ClientStream, type ResponseHandler } from "@plinth/http2";
import { Deadlines, silentLogger, systemRuntime } from "@plinth/runtime";
import type { Fields, InboundCall } from "../inbound-call.ts";
import { defaultForwardingLimits } from "../limits.ts";
import { ListServers } from "../pages/list-servers.ts";
import { ClusterPosition } from "../positions/cluster-position.ts";
import type { Server } from "../servers/server.ts";
import type { CallEnvironment, CallMethod } from "./call-environment.ts";
import { ForwardedCall } from "./forwarded-call.ts";
import { KeptBytes } from "./kept-bytes.ts";

/** A stream to a server, which a test ends. */
export class UpstreamStream implements Http2ClientStream {
	readonly id = 1;
	readonly unsentBytes = 0;
	readonly isLocalEnded = true;
	isClosed = false;
	/** Why the connection has ended, once it has. */
	failure: ConnectError | undefined;
	/** What the agent has sent on it. */
	sent = "";
	/** How often the agent has reset it. */
	resets = 0;
	#handler: ResponseHandler | undefined;

	/** The call is made on it. */
	opened(handler: ResponseHandler): this {
		this.#handler = handler;
		return this;
	}

	/** The call on it. */
	get call(): ResponseHandler {
		if (this.#handler === undefined) {
			throw new Error("no call was made");
		}
		return this.#handler;
	}

	write(chunk: Uint8Array): boolean {
		this.sent += Buffer.from(chunk).toString("latin1");
		return true;
	}
	end() {}
	consume() {}
	reset() {
		this.resets += 1;
	}

	/** The connection is lost. */
	lose(): void {
		this.isClosed = true;
		this.failure = new ConnectError("the connection was lost", Code.Unavailable);
		this.call.onReset(errorCode.internalError, "connection");
	}

	/** The server resets the call. */
	resetByServer(code: number): void {
		this.isClosed = true;
		this.call.onReset(code, "peer");
	}
}

/** A server whose connection is that session. */
function serverOf(address: string, session: unknown): Server {
	const health = {
		state: "healthy",
		...{ wasUnavailable() {}, connectionLost() {}, connectionFailed() {} },
	};
	const place = { session: () => session, leave() {} };
	return { address, health, take: () => place } as unknown as Server;
}

/** A server with that stream, whose connection can be lost. */
export function serverWith(stream: UpstreamStream, address = "a"): Server {
	return serverOf(address, {
		open: (_: unknown, handler: ResponseHandler) => stream.opened(handler),
		...{ arrived() {}, closed() {}, isReady: true, scheme: "http", host: address },
		get failure() {
			return stream.failure;
		},
	});
}

/** A server that never connects. */
export function connectingServer(): Server {
	return serverOf("b", new Promise(() => {}));
}

/** Options of `startWrite`. */
export interface WriteCallOptions {
	readonly contentType: string;
	/** The request, with the prefix of its protocol if it has one. */
	readonly request: Uint8Array;
	/** The server of the first attempt, and that of all others. */
	readonly servers: readonly [Server, Server];
	readonly method?: CallMethod;
	/** The memory for requests. */
	readonly memory?: KeptBytes;
	readonly lists?: ListServers<Server>;
}

const writeMethod = {
	isRepeatable: false,
	isStream: false,
	isUnary: true,
	write: "Write",
} as const;

/** Forwards a Write, and records its response. */
export function startWrite({
	contentType,
	request,
	servers: [first, others],
	method = writeMethod,
	memory = new KeptBytes(1_000),
	lists = new ListServers(10),
}: WriteCallOptions) {
	const body: (Uint8Array | "end")[] = [request, "end"];
	const response = {
		status: 0,
		fields: {} as Fields,
		body: "",
		trailers: {} as Fields,
		resets: 0,
		retries: 0,
	};
	const call = {
		...{ method: "POST", target: "/plinth.resource.v1.ResourceService/Write", authority: "x" },
		clientAddress: "",
		header: (name: string) => (name === "content-type" ? contentType : undefined),
		headers: () => [["content-type", contentType]],
		...{ take: () => body.shift(), wait() {}, listen() {} },
		respond: (status: number, fields: Fields) => Object.assign(response, { status, fields }),
		write: (chunk: Uint8Array) => {
			response.body += Buffer.from(chunk).toString("latin1");
		},
		end: (trailers: Fields = {}) => Object.assign(response, { trailers }),
		reset: () => {
			response.resets += 1;
		},
	} as unknown as InboundCall;
	const { clock, random } = systemRuntime;
	const environment = {
		...{ agent: "agent", credential: () => "", limits: defaultForwardingLimits },
		...{
			memory,
			watchRequests: new KeptBytes(1_000),
			position: new ClusterPosition(),
		},
		...{ lists, clock, random, deadlines: new Deadlines(clock) },
		...{ logger: silentLogger, noServer: () => "", watchMoved() {} },
		choose: (tried: ReadonlySet<Server>) => (tried.has(first) ? others : first),
		retried: () => {
			response.retries += 1;
		},
	} as unknown as CallEnvironment;
	const forwarded = new ForwardedCall(environment, call, method, () => {});
	forwarded.start();
	return { forwarded, response };
}
