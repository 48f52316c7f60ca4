import {
	errorCode,
	type Fields,
	type Http2Stream,
	type RequestHead,
	type ResetOrigin,
	type StreamHandler,
} from "@plinth/http2";
import type { HeaderFields } from "@plinth/rpc-server";
import { ByteQueue } from "@plinth/runtime";
import { urlOf } from "../authority.ts";
import type { BodyListener, HttpConnection, ResponseListener } from "../request-handler.ts";
import { dateField } from "./date-field.ts";
import type { Http2Call } from "./serve-request.ts";

/** The connection of a stream. */
export interface StreamConnection extends HttpConnection {
	/** A stream has ended. */
	streamClosed(): void;
}

/** More data may be written while less than this waits. */
const highWaterMark = 64 * 1024;

/**
 * A stream of `@plinth/http2`: a request and its response, and all that the listener keeps of them. Bytes of the body
 * wait here until they are read; only then may the client send as many again.
 */
export class PlinthStream implements Http2Call, StreamHandler {
	readonly connection: StreamConnection;
	readonly #stream: Http2Stream;
	readonly #head: RequestHead;
	readonly #unread = new ByteQueue();
	hasArrived = false;
	isLost = false;
	headersSent = false;
	#discards = false;
	/** Written bytes that have not left the process. */
	#unsentBytes = 0;
	#hasEnded = false;
	#bodyListener: BodyListener | undefined;
	#listener: ResponseListener | undefined;
	#onceClosed: (() => void) | undefined;
	#headers: Record<string, string> | undefined;
	#trailers: string[] | undefined;

	constructor(connection: StreamConnection, stream: Http2Stream, head: RequestHead) {
		this.connection = connection;
		this.#stream = stream;
		this.#head = head;
	}

	// ── The request ──

	get httpVersion(): string {
		return "2.0";
	}

	get method(): string {
		return this.#head.method;
	}

	get target(): string {
		return this.#head.path;
	}

	get url(): string {
		return urlOf(this);
	}

	get authority(): string | undefined {
		return this.#head.authority === "" ? undefined : this.#head.authority;
	}

	/** Always true: the connection refuses all other requests. */
	get hasOneHost(): boolean {
		return true;
	}

	get isGone(): boolean {
		return this.#stream.isClosed;
	}

	get isRead(): boolean {
		return this.hasArrived && this.#unread.length === 0;
	}

	header(name: string): string | undefined {
		const { fields } = this.#head;
		let found: string | undefined;
		for (let index = 0; index < fields.length; index += 2) {
			if (fields[index] === name) {
				const value = fields[index + 1] ?? "";
				found = found === undefined ? value : `${found}, ${value}`;
			}
		}
		return found;
	}

	headers(): Iterable<readonly [string, string]> {
		const { fields } = this.#head;
		const joined = new Map<string, string>();
		for (let index = 0; index < fields.length; index += 2) {
			const name = fields[index] ?? "";
			const value = fields[index + 1] ?? "";
			const before = joined.get(name);
			joined.set(name, before === undefined ? value : `${before}, ${value}`);
		}
		return joined;
	}

	read(): Uint8Array | undefined {
		const part = this.#unread.shift();
		if (part !== undefined) {
			this.#stream.consume(part.byteLength);
		}
		return part;
	}

	discard(): void {
		this.#discards = true;
		const byteCount = this.#unread.length;
		this.#unread.clear();
		this.#stream.consume(byteCount);
	}

	listenToBody(listener: BodyListener | undefined): void {
		this.#bodyListener = listener;
	}

	continue(): void {
		this.#stream.continue();
	}

	// ── What the connection calls ──

	onData(bytes: Uint8Array): void {
		if (this.#discards) {
			this.#stream.consume(bytes.byteLength);
			return;
		}
		this.#unread.push(bytes);
		this.#bodyListener?.bodyChanged();
	}

	onEnd(): void {
		this.hasArrived = true;
		this.#bodyListener?.bodyChanged();
	}

	onProgress(): void {
		const byteCount = this.#unsentBytes - this.#stream.unsentBytes;
		if (byteCount > 0) {
			this.#unsentBytes -= byteCount;
			this.#listener?.sent(byteCount);
		}
	}

	onDrain(): void {
		this.onProgress();
		if (this.#hasEnded) {
			this.#listener?.finished();
		}
	}

	onFinish(): void {
		this.#unsentBytes = 0;
		this.#listener?.finished();
		this.#close();
	}

	onReset(_code: number, origin: ResetOrigin): void {
		this.isLost = !this.isRead;
		this.#unread.clear();
		if (origin === "local") {
			// The caller of `reset` states the reason first.
			process.nextTick(() => this.#lose());
		} else {
			this.#lose();
		}
	}

	#lose(): void {
		this.#close();
		this.#bodyListener?.bodyChanged();
	}

	#close(): void {
		this.connection.streamClosed();
		this.#listener?.closed();
		this.#onceClosed?.();
	}

	// ── The response ──

	setHeader(name: string, value: string): void {
		this.#headers ??= {};
		this.#headers[name.toLowerCase()] = value;
	}

	writeHead(status: number, headers?: HeaderFields): void {
		if (!this.headersSent) {
			this.#stream.respond(status, this.#fieldsOf(headers));
			this.headersSent = true;
		}
	}

	write(data: Uint8Array): boolean {
		if (this.method === "HEAD") {
			this.#listener?.sent(data.byteLength);
			return true;
		}
		this.#unsentBytes += data.byteLength;
		this.#stream.write(data);
		return this.#stream.unsentBytes < highWaterMark;
	}

	addTrailers(trailers: HeaderFields): void {
		this.#trailers = fieldsOf(trailers, this.#trailers ?? []);
	}

	end(data?: Uint8Array): void {
		if (this.#hasEnded) {
			return;
		}
		this.#hasEnded = true;
		try {
			this.writeHead(200);
			this.#stream.end(this.method === "HEAD" ? undefined : data, this.#trailers);
		} catch {
			// Trailers that HTTP/2 does not allow.
			this.#stream.reset(errorCode.internalError);
		}
	}

	reset(code: number): void {
		this.#stream.reset(code);
	}

	listen(listener: ResponseListener | undefined): void {
		this.#listener = listener;
	}

	onceClosed(listener: () => void): void {
		this.#onceClosed = listener;
	}

	#fieldsOf(headers: HeaderFields = {}): Fields {
		const all = this.#headers === undefined ? headers : { ...this.#headers, ...headers };
		const fields = fieldsOf(all, []);
		if (all.date === undefined) {
			fields.push("date", dateField());
		}
		return fields;
	}
}

/** Adds headers to fields. */
function fieldsOf(headers: HeaderFields, fields: string[]): string[] {
	for (const name in headers) {
		if (Object.hasOwn(headers, name)) {
			fields.push(name, headers[name] ?? "");
		}
	}
	return fields;
}
