import type { Fields, Http2Stream, ResetOrigin, StreamHandler } from "../http2.ts";

/** Sends the body back, at the client's pace, and after it the request's trailers. */
export class Echo implements StreamHandler {
	static readonly resets: string[] = [];
	readonly #stream: Http2Stream;
	#unconsumed = 0;

	constructor(stream: Http2Stream) {
		this.#stream = stream;
		stream.respond(200, ["content-type", "application/grpc"]);
	}

	onData(bytes: Uint8Array): void {
		if (this.#stream.write(bytes)) {
			this.#stream.consume(bytes.length);
		} else {
			this.#unconsumed += bytes.length;
		}
	}

	onDrain(): void {
		this.#stream.consume(this.#unconsumed);
		this.#unconsumed = 0;
	}

	onEnd(trailers: Fields): void {
		this.#stream.end(undefined, ["grpc-status", "0", ...trailers]);
	}

	onReset(code: number, origin: ResetOrigin): void {
		Echo.resets.push(`${code} ${origin}`);
	}
}
