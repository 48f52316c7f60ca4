/** Servers and clients of a forwarder, in one process and under a fake clock. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
	errorCode,
	fieldValue,
	type Http2ClientStream,
	type ResetOrigin,
	type ResponseHandler,
	type Fields as WireFields,
} from "@plinth/http2";
import { type WatchEvent, WatchEventSchema, WatchListRequestSchema } from "@plinth/proto";
import type { Session } from "@plinth/rpc-client/session";
import type { Fields, InboundCall, InboundListener } from "../inbound-call.ts";
import type { Connections, Place } from "./server-network.ts";

const prefixBytes = 5;

const { event: bookmark } = create(WatchEventSchema, { event: { case: "bookmark", value: {} } });
const { event: endOfSnapshot } = create(WatchEventSchema, {
	event: { case: "endOfSnapshot", value: {} },
});
const { event: upsert } = create(WatchEventSchema, {
	event: { case: "upsert", value: { resource: { id: { name: "a" }, version: "1" } } },
});

/** A stream to a simulated server. */
export class SimulatedStream implements Http2ClientStream {
	readonly id = 1;
	readonly unsentBytes = 0;
	readonly isLocalEnded = true;
	readonly connections: SimulatedConnections;
	readonly path: string;
	/** The call that its client has named. */
	readonly call: SimulatedCall | undefined;
	readonly request: Uint8Array[] = [];
	isClosed = false;
	/** The last version that the server has sent of a watch; `undefined` before the head. */
	sent: number | undefined;
	readonly #handler: ResponseHandler;

	constructor(
		connections: SimulatedConnections,
		path: string,
		call: SimulatedCall | undefined,
		handler: ResponseHandler,
	) {
		this.connections = connections;
		this.path = path;
		this.call = call;
		this.#handler = handler;
	}

	write(chunk: Uint8Array): boolean {
		this.request.push(chunk);
		return true;
	}

	end(chunk?: Uint8Array): void {
		this.request.push(...(chunk === undefined ? [] : [chunk]));
	}

	consume(): void {}

	/** The client resets the stream. */
	reset(code: number): void {
		this.close(code, "local");
	}

	/** Ends the stream early. */
	close(code: number, origin: ResetOrigin): void {
		if (this.#leave()) {
			this.#handler.onReset(code, origin);
		}
	}

	respond(status: number, fields: WireFields = []): void {
		this.#handler.onHead(status, fields);
	}

	/** Ends the response. */
	ended(trailers: WireFields = []): void {
		this.#handler.onEnd(trailers);
		if (this.#leave()) {
			this.#handler.onFinish?.();
		}
	}

	#leave(): boolean {
		const wasOpen = !this.isClosed;
		this.isClosed = true;
		this.connections.streams.delete(this);
		return wasOpen;
	}

	/** Completes the call, as a server does. */
	complete(): void {
		if (this.sent === undefined) {
			this.respond(200, ["content-type", "application/grpc"]);
		}
		this.#handler.onData(Buffer.from(encodeEnvelope(0, Uint8Array.of(8, 1))));
		this.ended(["grpc-status", "0"]);
	}

	/** Sends the next message of a watch: after a snapshot of one resource, one version after the other. */
	sendNext(): void {
		const body = Buffer.concat(this.request).subarray(prefixBytes);
		const { afterVersion } = fromBinary(WatchListRequestSchema, body);
		if (this.sent === undefined) {
			this.respond(200, ["content-type", "application/grpc"]);
			this.sent = afterVersion === "" ? 0 : Number(afterVersion);
			if (this.sent === 0) {
				this.#send(upsert);
			}
			return;
		}
		this.sent += 1;
		this.#send(this.sent === 1 ? endOfSnapshot : bookmark, this.sent);
	}

	#send(event: WatchEvent["event"], version?: number): void {
		const text = version === undefined ? "" : String(version);
		const message = create(WatchEventSchema, { event, version: text });
		this.#handler.onData(Buffer.from(encodeEnvelope(0, toBinary(WatchEventSchema, message))));
	}
}

/** The connections of a forwarder to one server, since it was added. */
export class SimulatedConnections implements Connections {
	readonly address: string;
	readonly streams = new Set<SimulatedStream>();
	wasChecked = false;
	isClosed = false;
	readonly #network: SimulatedNetwork;
	#failure: ConnectError | undefined;
	#session: Session | undefined;

	constructor(network: SimulatedNetwork, address: string) {
		this.#network = network;
		this.address = address;
	}

	take(): Place {
		return { session: () => this.#current(), leave: () => {} };
	}

	close(): void {
		this.isClosed = true;
		const cut = [...this.streams].filter((stream) => stream.call !== undefined);
		for (const { call } of cut) {
			this.#network.violations.push(`a call to ${this.address} was cut: ${call?.kind}`);
		}
		this.lose();
	}

	/** The connection is lost, with all streams. */
	lose(): void {
		this.#failure = new ConnectError("the connection was lost", Code.Unavailable);
		this.#session = undefined;
		for (const stream of [...this.streams]) {
			if (stream.call !== undefined) {
				stream.call.losses += 1;
			}
			stream.close(errorCode.internalError, "connection");
		}
	}

	/** A connection is opened by the first call, which waits for it. */
	#current(): Session | Promise<Session> {
		if (this.#session !== undefined) {
			return this.#session;
		}
		const session = this.#open();
		return new Promise((resolve) => {
			this.#network.connecting.push(() => {
				this.#session ??= session;
				resolve(this.#session);
			});
		});
	}

	#open(): Session {
		let isLost: ConnectError | undefined;
		this.#failure = undefined;
		const connections = this;
		const session = {
			get isReady() {
				return !connections.isClosed;
			},
			scheme: "http",
			host: "x",
			open: (fields: WireFields, handler: ResponseHandler) =>
				this.#network.opened(this, fields, handler),
			arrived: () => {},
			closed: () => {},
			get failure() {
				isLost ??= connections.#failure;
				return isLost;
			},
		};
		return session as unknown as Session;
	}
}

/** All servers, by address. */
export class SimulatedNetwork {
	readonly violations: string[] = [];
	/** Connections that are being opened. */
	readonly connecting: (() => void)[] = [];
	readonly all: SimulatedConnections[] = [];
	/** The addresses that calls may go to. */
	current: ReadonlySet<string> = new Set();
	/** The calls of clients, by the header that names them. */
	readonly calls = new Map<string, SimulatedCall>();

	connect(address: string): SimulatedConnections {
		const connections = new SimulatedConnections(this, address);
		this.all.push(connections);
		return connections;
	}

	/** The streams of calls, those of health checks excluded. */
	get streams(): readonly SimulatedStream[] {
		return this.all.flatMap(({ streams }) => [...streams].filter(({ call }) => call !== undefined));
	}

	/** Whether they are those of a server that was not removed. */
	isCurrent(connections: SimulatedConnections): boolean {
		const { address } = connections;
		const last = this.all.filter((each) => each.address === address).at(-1);
		return this.current.has(address) && last === connections;
	}

	opened(
		connections: SimulatedConnections,
		fields: WireFields,
		handler: ResponseHandler,
	): SimulatedStream {
		const path = fieldValue(fields, ":path") ?? "";
		const call = this.calls.get(fieldValue(fields, "x-call") ?? "");
		const stream = new SimulatedStream(connections, path, call, handler);
		connections.streams.add(stream);
		if (path === "/readyz") {
			queueMicrotask(() => {
				connections.wasChecked = true;
				stream.respond(200);
				stream.ended();
			});
			return stream;
		}
		// A call that waited for its connection stays if no other server can be called.
		const another = this.all.some((each) => this.isCurrent(each) && each.wasChecked);
		if (!this.isCurrent(connections) && another) {
			this.violations.push(`a call was sent to ${connections.address}, which was removed`);
		}
		if (!connections.wasChecked) {
			this.violations.push(`a call was sent to ${connections.address}, which was not checked`);
		}
		return stream;
	}
}

/** A call of a client. */
export class SimulatedCall implements InboundCall {
	readonly kind: "Read" | "Write" | "WatchList";
	readonly method = "POST";
	readonly target: string;
	readonly authority = "x";
	readonly clientAddress = "";
	/** How often the connection of its stream was lost. */
	losses = 0;
	/** How it has ended; `undefined` if it has not. */
	outcome: string | undefined;
	/** The versions that a watch has received. */
	readonly versions: number[] = [];
	readonly #headers: ReadonlyMap<string, string>;
	readonly #body: (Uint8Array | "end")[];

	constructor(kind: SimulatedCall["kind"], name: string, afterVersion: string) {
		this.kind = kind;
		this.target = `/test.Service/${kind}`;
		this.#headers = new Map([
			["content-type", "application/grpc"],
			["x-call", name],
		]);
		const request = create(WatchListRequestSchema, { afterVersion });
		this.#body = [encodeEnvelope(0, toBinary(WatchListRequestSchema, request)), "end"];
	}

	header(name: string): string | undefined {
		return this.#headers.get(name);
	}

	headers(): Iterable<readonly [string, string]> {
		return this.#headers;
	}

	take(): Uint8Array | "end" | undefined {
		return this.#body.shift();
	}

	wait(): void {}

	respond(_status: number, fields: Fields): void {
		if (fields["grpc-status"] !== undefined) {
			this.outcome = `${fields["grpc-status"]}: ${fields["grpc-message"]}`;
		}
	}

	write(chunk: Uint8Array): undefined {
		if (this.kind === "WatchList") {
			const { version } = fromBinary(WatchEventSchema, chunk.subarray(prefixBytes));
			this.versions.push(...(version === "" ? [] : [Number(version)]));
		}
	}

	end(trailers: Fields = {}): void {
		this.outcome ??= trailers["grpc-status"] === "0" ? "ok" : JSON.stringify(trailers);
	}

	reset(code: number): void {
		this.outcome ??= `reset with ${code}`;
	}

	listen(_: InboundListener): void {}
}
