import type { DescMethod, DescService } from "@bufbuild/protobuf";

/**
 * The response of a call: a Connect `UnaryResponse` or `StreamResponse`. Its headers and trailers are created on
 * first access: pass it on as it is, since a spread copies neither.
 *
 * The trailers of a stream are empty until its last message has been read.
 */
export class CallResponse<Stream extends boolean, Method extends DescMethod, Message> {
	readonly stream: Stream;
	readonly method: Method;
	readonly message: Message;
	#header: Headers | undefined;
	#trailer: Headers | undefined;

	constructor(
		stream: Stream,
		method: Method,
		message: Message,
		header: Headers | undefined,
		trailer: Headers | undefined,
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
		this.#header ??= new Headers();
		return this.#header;
	}

	get trailer(): Headers {
		this.#trailer ??= new Headers();
		return this.#trailer;
	}
}
