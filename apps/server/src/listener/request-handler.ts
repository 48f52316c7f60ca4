import type {
	IncomingHttpHeaders,
	IncomingMessage,
	OutgoingHttpHeaders,
	ServerResponse,
} from "node:http";
import type { IncomingHttpHeaders as Http2Headers, ServerHttp2Stream } from "node:http2";

/** Events of a request, without arguments. */
export type RequestEvent = "readable" | "end" | "error" | "close";

/** What handlers use of a request over HTTP/2. Node's own class is one, and `CallRequest`. */
export interface Http2Request {
	readonly stream: ServerHttp2Stream;
	readonly httpVersion: string;
	readonly method: string;
	readonly url: string;
	readonly authority: string;
	readonly headers: IncomingHttpHeaders | Http2Headers;
	readonly rawHeaders: string[];
	readonly readableEnded: boolean;
	readonly destroyed: boolean;
	/** Bytes, since no encoding is set. */
	read(): Uint8Array | string | null;
	resume(): unknown;
	on(event: RequestEvent, listener: () => void): unknown;
	once(event: RequestEvent, listener: () => void): unknown;
	off(event: RequestEvent, listener: () => void): unknown;
}

/** What handlers use of a response over HTTP/2. Node's own class is one, and `CallResponse`. */
export interface Http2Response {
	readonly stream: ServerHttp2Stream;
	readonly headersSent: boolean;
	statusCode: number;
	setHeader(name: string, value: string): unknown;
	writeHead(status: number, headers?: OutgoingHttpHeaders): unknown;
	write(
		data: Uint8Array,
		encoding: BufferEncoding,
		sent: (failure?: Error | null) => void,
	): boolean;
	addTrailers(trailers: OutgoingHttpHeaders): void;
	end(data?: Uint8Array | string): unknown;
	once(event: "close", listener: () => void): unknown;
}

/** Handles one HTTP request of either protocol. Must not throw. */
export type RequestHandler = (
	request: IncomingMessage | Http2Request,
	response: ServerResponse | Http2Response,
) => void;

/** A request's path, without its query. */
export function pathOf(request: IncomingMessage | Http2Request): string {
	return (request.url ?? "").split("?", 1)[0] ?? "";
}

/** A request's headers, without the pseudo-headers of HTTP/2. */
export function headersOf(request: IncomingMessage | Http2Request): Headers {
	const headers = new Headers();
	for (const [name, value] of Object.entries(request.headers)) {
		if (!name.startsWith(":") && value !== undefined) {
			headers.set(name, Array.isArray(value) ? value.join(", ") : value);
		}
	}
	return headers;
}

/** Sends a response of text, whose last line is terminated if it is not. */
export function sendText(
	response: ServerResponse | Http2Response,
	status: number,
	text: string,
	contentType = "text/plain; charset=utf-8",
): void {
	const body = text.endsWith("\n") ? text : `${text}\n`;
	const headers = {
		"content-type": contentType,
		"content-length": Buffer.byteLength(body),
		"cache-control": "no-store",
	};
	// The two kinds of response share this signature, but not a type that says so.
	if ("stream" in response) {
		response.writeHead(status, headers);
	} else {
		response.writeHead(status, headers);
	}
	response.end(body);
}
