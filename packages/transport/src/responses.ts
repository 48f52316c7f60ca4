import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { appendHeaders } from "./header-copies.ts";

/** Headers, or the function that creates them on first access. `undefined` stands for empty headers. */
export type HeaderSource = Headers | (() => Headers) | undefined;

function headersOf(source: HeaderSource): Headers {
	return (typeof source === "function" ? source() : source) ?? new Headers();
}

/**
 * The response of a call: a Connect `UnaryResponse` or `StreamResponse`. Its headers and trailers are created on
 * first access. Pass the response on as it is, since a spread would copy neither.
 *
 * The trailers of a stream are empty until its last message has been read.
 */
export class CallResponse<Stream extends boolean, Method extends DescMethod, Message> {
	readonly stream: Stream;
	readonly method: Method;
	readonly message: Message;
	#header: HeaderSource;
	#trailer: HeaderSource;

	constructor(
		stream: Stream,
		method: Method,
		message: Message,
		header: HeaderSource,
		trailer: HeaderSource,
	) {
		this.stream = stream;
		this.method = method;
		this.message = message;
		this.#header = header;
		this.#trailer = trailer;
	}

	get service(): DescService {
		return this.method.parent;
	}

	get header(): Headers {
		const header = headersOf(this.#header);
		this.#header = header;
		return header;
	}

	get trailer(): Headers {
		const trailer = headersOf(this.#trailer);
		this.#trailer = trailer;
		return trailer;
	}

	/** Fills in the trailers, even for code that already holds the empty ones. */
	fillTrailer(trailer: HeaderSource): void {
		if (this.#trailer === undefined) {
			this.#trailer = trailer;
		} else {
			appendHeaders(this.trailer, headersOf(trailer));
		}
	}
}
