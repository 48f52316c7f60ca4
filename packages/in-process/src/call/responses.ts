import type {
	DescMessage,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	MessageShape,
} from "@bufbuild/protobuf";
import type { StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { appendHeaders } from "./header-copies.ts";

/**
 * The response of a unary call. Its headers and trailers are created on first access: pass it on as
 * it is, since a spread copies neither.
 */
export class UnaryResult<I extends DescMessage, O extends DescMessage>
	implements UnaryResponse<I, O>
{
	readonly stream = false;
	readonly method: DescMethodUnary<I, O>;
	readonly message: MessageShape<O>;
	#header: Headers | undefined;
	#trailer: Headers | undefined;

	constructor(
		method: DescMethodUnary<I, O>,
		message: MessageShape<O>,
		header: Headers | undefined,
		trailer: Headers | undefined,
	) {
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

/**
 * The response of a server-streaming call; like a `UnaryResult`, pass it on as it is. The trailers are
 * empty until the last message has been read.
 */
export class StreamResult<I extends DescMessage, O extends DescMessage>
	implements StreamResponse<I, O>
{
	readonly stream = true;
	readonly method: DescMethodServerStreaming<I, O>;
	readonly message: AsyncIterable<MessageShape<O>>;
	#header: Headers | undefined;
	#trailer: Headers | undefined;

	constructor(
		method: DescMethodServerStreaming<I, O>,
		message: AsyncIterable<MessageShape<O>>,
		header: Headers | undefined,
		trailer: Headers | undefined,
	) {
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

	/** Fills in the trailers, also for code that already holds the empty ones. */
	fillTrailer(trailer: Headers): void {
		appendHeaders(this.trailer, trailer);
	}
}
