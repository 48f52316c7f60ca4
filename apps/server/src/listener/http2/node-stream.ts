import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
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

/** Shared by all streams: closures for each would be a large part of the memory of an idle stream. */
const listeners = new WeakMap<object, ResponseListener>();
const bodyListeners = new WeakMap<object, BodyListener>();

function onFinish(this: object): void {
	listeners.get(this)?.finished();
}

function onClose(this: object): void {
	const listener = listeners.get(this);
	listeners.delete(this);
	listener?.closed();
}

function onBody(this: object): void {
	bodyListeners.get(this)?.bodyChanged();
}

/** The session reports the error as well. */
function onError(this: object): void {
	bodyListeners.get(this)?.bodyChanged();
}

const withTrailers = { waitForTrailers: true };

/**
 * A stream of `node:http2`: a request and its response. Node's own requests and responses, which are streams in front
 * of streams, cost a call as much as all that Plinth does.
 */
export class NodeStream implements HttpRequest, HttpResponse {
	readonly httpVersion = "2.0";
	readonly connection: HttpConnection;
	readonly #stream: ServerHttp2Stream;
	readonly #requestHeaders: IncomingHttpHeaders;
	readonly #rawHeaders: readonly string[];
	#headers: OutgoingHttpHeaders | undefined;
	#trailers: OutgoingHttpHeaders | undefined;

	constructor(
		connection: HttpConnection,
		stream: ServerHttp2Stream,
		headers: IncomingHttpHeaders,
		rawHeaders: readonly string[],
	) {
		this.connection = connection;
		this.#stream = stream;
		this.#requestHeaders = headers;
		this.#rawHeaders = rawHeaders;
		stream.on("error", onError);
	}

	// ── The request ──

	get method(): string {
		return this.#requestHeaders[":method"] ?? "";
	}

	get target(): string {
		return this.#requestHeaders[":path"] ?? "";
	}

	get url(): string {
		return urlOf(this);
	}

	/** A client that translates HTTP/1.1 may send Host instead (RFC 9113, section 8.3.1). */
	get authority(): string | undefined {
		return this.#requestHeaders[":authority"] ?? this.#requestHeaders.host;
	}

	get hasOneHost(): boolean {
		return namesOneHost(this.#rawHeaders);
	}

	get isGone(): boolean {
		return this.#stream.destroyed || this.#stream.closed;
	}

	get hasArrived(): boolean {
		return this.#stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
	}

	get isRead(): boolean {
		return this.#stream.readableEnded;
	}

	get isLost(): boolean {
		return this.#stream.destroyed && !this.#stream.readableEnded;
	}

	header(name: string): string | undefined {
		return headerOf(this.#requestHeaders, name);
	}

	headers(): Iterable<readonly [string, string]> {
		return entriesOf(this.#requestHeaders);
	}

	read(): Uint8Array | undefined {
		return this.#stream.read() ?? undefined;
	}

	discard(): void {
		this.#stream.resume();
	}

	listenToBody(listener: BodyListener | undefined): void {
		const stream = this.#stream;
		if (listener === undefined) {
			bodyListeners.delete(stream);
			// A listener for what is readable would keep the rest from being dropped.
			stream.off("readable", onBody);
			stream.off("end", onBody);
			stream.off("close", onBody);
			return;
		}
		if (!bodyListeners.has(stream)) {
			stream.on("readable", onBody);
			stream.on("end", onBody);
			stream.on("close", onBody);
		}
		bodyListeners.set(stream, listener);
	}

	/** Tells a client that waits for permission to send the body now. */
	continue(): void {
		this.#stream.additionalHeaders({ ":status": constants.HTTP_STATUS_CONTINUE });
	}

	// ── The response ──

	get headersSent(): boolean {
		return this.#stream.headersSent;
	}

	setHeader(name: string, value: string): void {
		this.#headers ??= {};
		this.#headers[name.toLowerCase()] = value;
	}

	writeHead(status: number, headers?: HeaderFields, mayHaveTrailers = true): void {
		const stream = this.#stream;
		if (stream.destroyed || stream.headersSent) {
			return;
		}
		const fields = { ":status": status, ...this.#headers, ...headers };
		if (mayHaveTrailers && this.method !== "HEAD") {
			stream.once("wantTrailers", this.#onWantTrailers);
			stream.respond(fields, withTrailers);
		} else {
			stream.respond(fields);
		}
	}

	write(data: Uint8Array): boolean {
		const stream = this.#stream;
		if (stream.destroyed) {
			listeners.get(stream)?.closed();
			return false;
		}
		return stream.write(data, (failure) => {
			const listener = listeners.get(stream);
			if (failure) {
				// The close event may come late, and writes would continue until then.
				listener?.closed();
			} else {
				listener?.sent(data.byteLength);
			}
		});
	}

	addTrailers(trailers: HeaderFields): void {
		this.#trailers = { ...this.#trailers, ...trailers };
	}

	end(data?: Uint8Array): void {
		const stream = this.#stream;
		this.writeHead(constants.HTTP_STATUS_OK);
		if (!stream.destroyed && !stream.writableEnded) {
			stream.end(this.method === "HEAD" ? undefined : data);
		}
	}

	reset(code: number): void {
		this.#stream.close(code);
	}

	listen(listener: ResponseListener | undefined): void {
		const stream = this.#stream;
		if (listener === undefined) {
			// Node keeps closed streams until its next full collection: what they refer to would be kept as well.
			listeners.delete(stream);
			return;
		}
		if (!listeners.has(stream)) {
			stream.on("finish", onFinish);
			stream.on("close", onClose);
		}
		listeners.set(stream, listener);
	}

	onceClosed(listener: () => void): void {
		this.#stream.once("close", listener);
	}

	readonly #onWantTrailers = (): void => {
		const stream = this.#stream;
		if (stream.destroyed) {
			return;
		}
		try {
			stream.sendTrailers(this.#trailers ?? {});
		} catch {
			// The trailers have names that HTTP/2 does not allow. Uncaught, the error would end the process.
			stream.close(constants.NGHTTP2_INTERNAL_ERROR);
		}
	};
}
