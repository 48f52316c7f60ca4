import type {
	DescMessage,
	DescMethodStreaming,
	DescMethodUnary,
	DescService,
	MessageShape,
} from "@bufbuild/protobuf";
import type { StreamResponse, UnaryResponse } from "@connectrpc/connect";
import { appendHeaders } from "./header-copies.ts";

/**
 * What a unary call answers. Its headers and trailers are made when they are touched: pass it on as
 * it is, a spread copies none of the two.
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
 * What a call with streams answers; as `UnaryResult`, it is to be passed on as it is. The trailers
 * are empty until the last message has been read.
 */
export class StreamResult<I extends DescMessage, O extends DescMessage>
	implements StreamResponse<I, O>
{
	readonly stream = true;
	readonly method: DescMethodStreaming<I, O>;
	readonly message: AsyncIterable<MessageShape<O>>;
	#header: Headers | undefined;
	#trailer: Headers | undefined;

	constructor(
		method: DescMethodStreaming<I, O>,
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

	/** The trailers have come: whoever holds the empty ones sees them filled. */
	fillTrailer(trailer: Headers): void {
		appendHeaders(this.trailer, trailer);
	}
}
