import { Stream, type StreamHost } from "../connection/stream.ts";
import type { Fields, Http2Stream, RequestHead } from "../http2.ts";

/** What a stream needs from the server's side of its connection. */
export interface ServerStreamHost extends StreamHost {
	/** Sends a response's head. */
	sendHead(stream: ServerStream, status: number, fields: Fields, endStream: boolean): void;
	/** Sends the head of an informational response. */
	sendContinue(stream: ServerStream): void;
}

/** A request, and its response. */
export class ServerStream extends Stream implements Http2Stream {
	readonly head: RequestHead;
	readonly #host: ServerStreamHost;
	#hasHead = false;

	constructor(
		host: ServerStreamHost,
		id: number,
		head: RequestHead,
		receiveWindowBytes: number,
		sendWindow: number,
	) {
		super(host, id, head.contentLength, receiveWindowBytes, sendWindow);
		this.#host = host;
		this.head = head;
	}

	override get acceptsData(): boolean {
		return true;
	}

	/** The rest of a request whose response was ended is usually dropped. */
	override get usesData(): boolean {
		return !this.hasEnd;
	}

	continue(): void {
		if (!this.#hasHead && !this.isClosed) {
			this.#host.sendContinue(this);
		}
	}

	respond(status: number, fields: Fields, endStream = false): void {
		if (this.#hasHead) {
			throw new Error(`stream ${this.id} already has a response`);
		}
		if (!Number.isInteger(status) || status < 200 || status > 999) {
			throw new Error(`the status must be from 200 to 999, got: ${status}`);
		}
		this.#host.checkFields(status, fields);
		this.#hasHead = true;
		this.hasEnd = endStream;
		if (!this.isClosed) {
			this.#host.sendHead(this, status, fields, endStream);
		}
	}

	protected override checkHead(): void {
		if (!this.#hasHead) {
			throw new Error(`stream ${this.id} needs a response first`);
		}
	}
}
