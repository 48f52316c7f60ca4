import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HeaderFields } from "@plinth/rpc-server";
import { urlOf } from "../authority.ts";
import { entriesOf, headerOf, namesOneHost } from "../node-headers.ts";
import type {
	BodyListener,
	HttpConnection,
	HttpRequest,
	HttpResponse,
	ResponseListener,
} from "../request-handler.ts";
import type { Http1Calls } from "./http1-calls.ts";

/** The name of a header that is no property of a plain object. */
const prototypeName = "__proto__";

const connections = new WeakMap<Socket, Http1Connection>();

function connectionOf(socket: Socket): Http1Connection {
	const known = connections.get(socket);
	if (known !== undefined) {
		return known;
	}
	const connection = new Http1Connection(socket);
	connections.set(socket, connection);
	return connection;
}

class Http1Connection implements HttpConnection {
	readonly isMultiplexed = false;
	readonly isEncrypted: boolean;
	readonly remoteAddress: string;
	readonly #socket: Socket;

	constructor(socket: Socket) {
		this.#socket = socket;
		this.isEncrypted = "encrypted" in socket && socket.encrypted === true;
		this.remoteAddress = socket.remoteAddress ?? "";
	}

	onceClosed(listener: () => void): void {
		this.#socket.once("close", listener);
	}

	ping(): void {}

	destroy(): void {
		this.#socket.destroy();
	}
}

/** A request over HTTP/1.1, and its response. */
export class Http1Call implements HttpRequest, HttpResponse {
	readonly hasArrived = false;
	readonly connection: HttpConnection;
	readonly #request: IncomingMessage;
	readonly #response: ServerResponse;
	readonly #calls: Pick<Http1Calls, "beforeHead">;
	#bodyListener: BodyListener | undefined;
	#isListeningToBody = false;
	#listener: ResponseListener | undefined;
	#isListening = false;

	/** @param calls - decides whether the connection ends with the response. */
	constructor(
		request: IncomingMessage,
		response: ServerResponse,
		calls: Pick<Http1Calls, "beforeHead">,
	) {
		this.#calls = calls;
		this.#request = request;
		this.#response = response;
		this.connection = connectionOf(request.socket);
	}

	// ── The request ──

	get httpVersion(): string {
		return this.#request.httpVersion;
	}

	get method(): string {
		return this.#request.method ?? "";
	}

	get target(): string {
		return this.#request.url ?? "";
	}

	get url(): string {
		return urlOf(this);
	}

	get authority(): string | undefined {
		return this.#request.headers.host;
	}

	get hasOneHost(): boolean {
		return namesOneHost(this.#request.rawHeaders);
	}

	get isGone(): boolean {
		return this.#request.socket.destroyed;
	}

	get isRead(): boolean {
		return this.#request.readableEnded;
	}

	get isLost(): boolean {
		return this.#request.destroyed && !this.#request.readableEnded;
	}

	header(name: string): string | undefined {
		return headerOf(this.#request.headers, name);
	}

	*headers(): Generator<readonly [string, string], undefined> {
		const { headers, headersDistinct } = this.#request;
		yield* entriesOf(headers);
		// Not among the others, which Node.js assigns to properties of a plain object.
		const values = headersDistinct[prototypeName];
		if (values !== undefined) {
			yield [prototypeName, values.join(", ")];
		}
	}

	read(): Uint8Array | undefined {
		return this.#request.read() ?? undefined;
	}

	discard(): void {
		this.#request.resume();
	}

	listenToBody(listener: BodyListener | undefined): void {
		const request = this.#request;
		this.#bodyListener = listener;
		if (listener === undefined) {
			// A listener for what is readable would keep the rest from being dropped.
			request.off("readable", this.#onBody);
		} else if (!this.#isListeningToBody) {
			this.#isListeningToBody = true;
			request.on("readable", this.#onBody);
			request.once("end", this.#onBody);
			request.once("error", this.#onBody);
			request.once("close", this.#onBody);
		}
	}

	readonly #onBody = (): void => this.#bodyListener?.bodyChanged();

	// ── The response ──

	get headersSent(): boolean {
		return this.#response.headersSent;
	}

	setHeader(name: string, value: string): void {
		this.#response.setHeader(name, value);
	}

	writeHead(status: number, headers?: HeaderFields): void {
		if (!this.#response.headersSent) {
			this.#calls.beforeHead(this.#request, this.#response);
			this.#response.writeHead(status, { ...headers });
		}
	}

	write(data: Uint8Array): boolean {
		return this.#response.write(data, (failure) => {
			if (failure) {
				// The close event may come late, and writes would continue until then.
				this.#listener?.closed();
			} else {
				this.#listener?.sent(data.byteLength);
			}
		});
	}

	addTrailers(trailers: HeaderFields): void {
		this.#response.addTrailers({ ...trailers });
	}

	end(data?: Uint8Array): void {
		this.writeHead(200);
		this.#response.end(data);
	}

	reset(): void {
		this.#request.socket.destroy();
	}

	listen(listener: ResponseListener | undefined): void {
		this.#listener = listener;
		if (!this.#isListening) {
			this.#isListening = true;
			this.#response.on("error", () => {});
			this.#response.on("finish", () => this.#listener?.finished());
			this.#response.on("close", () => this.#listener?.closed());
		}
	}

	onceClosed(listener: () => void): void {
		this.#response.once("close", listener);
	}
}
