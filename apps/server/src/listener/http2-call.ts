import type { OutgoingHttpHeaders } from "node:http";
import {
	constants,
	type IncomingHttpHeaders as Http2Headers,
	Http2ServerRequest,
	Http2ServerResponse,
	type ServerHttp2Session,
	type ServerHttp2Stream,
} from "node:http2";
import type {
	Http2Request,
	Http2Response,
	RequestEvent,
	RequestHandler,
} from "./request-handler.ts";

/**
 * Serves the streams of a session. Requests that look like calls get objects that do hardly more than to name the parts
 * of their streams; Node's own, which are streams in front of streams, cost a call as much as all that Plinth does.
 */
export function serveStreams(session: ServerHttp2Session, handler: RequestHandler): void {
	session.on("stream", (stream, headers, _flags, rawHeaders) => {
		if (isCall(headers)) {
			stream.on("error", ignore);
			handler(new CallRequest(stream, headers, rawHeaders), new CallResponse(stream));
			return;
		}
		const request: Http2Request = new Http2ServerRequest(stream, headers, {}, rawHeaders);
		const response = new Http2ServerResponse(stream);
		if (headers[":method"] === "CONNECT") {
			response.statusCode = constants.HTTP_STATUS_METHOD_NOT_ALLOWED;
			response.end();
		} else if (headers.expect === undefined) {
			handler(request, response);
		} else if (headers.expect === "100-continue") {
			response.writeContinue();
			handler(request, response);
		} else {
			response.statusCode = constants.HTTP_STATUS_EXPECTATION_FAILED;
			response.end();
		}
	});
}

/** The session reports the error as well. */
function ignore(): void {}

function isCall(headers: Http2Headers): boolean {
	return (
		headers[":method"] === "POST" &&
		headers.expect === undefined &&
		headers["content-type"]?.startsWith("application/") === true
	);
}

/** The request of a call. */
class CallRequest implements Http2Request {
	readonly httpVersion = "2.0";
	readonly stream: ServerHttp2Stream;
	readonly headers: Http2Headers;
	readonly rawHeaders: string[];

	constructor(stream: ServerHttp2Stream, headers: Http2Headers, rawHeaders: string[]) {
		this.stream = stream;
		this.headers = headers;
		this.rawHeaders = rawHeaders;
	}

	get method(): string {
		return this.headers[":method"] ?? "";
	}

	get url(): string {
		return this.headers[":path"] ?? "";
	}

	/** A client that translates HTTP/1.1 may send Host instead (RFC 9113, section 8.3.1). */
	get authority(): string {
		return this.headers[":authority"] ?? this.headers.host ?? "";
	}

	get readableEnded(): boolean {
		return this.stream.readableEnded;
	}

	get destroyed(): boolean {
		return this.stream.destroyed;
	}

	read(): Uint8Array | null {
		return this.stream.read();
	}

	resume(): void {
		this.stream.resume();
	}

	on(event: RequestEvent, listener: () => void): void {
		this.stream.on(event, listener);
	}

	once(event: RequestEvent, listener: () => void): void {
		this.stream.once(event, listener);
	}

	off(event: RequestEvent, listener: () => void): void {
		this.stream.off(event, listener);
	}
}

/** The response of a call. */
export class CallResponse implements Http2Response {
	readonly stream: ServerHttp2Stream;
	statusCode = 200;
	#headers: OutgoingHttpHeaders | undefined;
	#trailers: OutgoingHttpHeaders | undefined;

	constructor(stream: ServerHttp2Stream) {
		this.stream = stream;
	}

	get headersSent(): boolean {
		return this.stream.headersSent;
	}

	setHeader(name: string, value: string): void {
		this.#headers ??= {};
		this.#headers[name.toLowerCase()] = value;
	}

	/** @param mayHaveTrailers - false if no trailers follow, so that the last data ends the response. */
	writeHead(status: number, headers?: OutgoingHttpHeaders, mayHaveTrailers = true): void {
		const { stream } = this;
		if (stream.destroyed || stream.headersSent) {
			return;
		}
		const fields = { ":status": status, ...this.#headers, ...headers };
		if (mayHaveTrailers) {
			stream.once("wantTrailers", this.#onWantTrailers);
			stream.respond(fields, withTrailers);
		} else {
			stream.respond(fields);
		}
	}

	write(
		data: Uint8Array,
		_encoding: BufferEncoding,
		sent: (failure?: Error | null) => void,
	): boolean {
		if (this.stream.destroyed) {
			sent(new Error("the stream is closed"));
			return false;
		}
		this.writeHead(this.statusCode);
		return this.stream.write(data, sent);
	}

	addTrailers(trailers: OutgoingHttpHeaders): void {
		this.#trailers = { ...this.#trailers, ...trailers };
	}

	end(data?: Uint8Array | string): void {
		const { stream } = this;
		this.writeHead(this.statusCode);
		if (!stream.destroyed) {
			stream.end(data);
		}
	}

	once(event: "close", listener: () => void): void {
		this.stream.once(event, listener);
	}

	readonly #onWantTrailers = (): void => {
		const { stream } = this;
		if (stream.destroyed) {
			return;
		}
		try {
			stream.sendTrailers(this.#trailers ?? {});
		} catch {
			// They have names that HTTP/2 does not allow. The error would end the process.
			stream.close(constants.NGHTTP2_INTERNAL_ERROR);
		}
	};
}

const withTrailers = { waitForTrailers: true };
