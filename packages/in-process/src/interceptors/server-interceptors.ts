import type {
	DescMethod,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	Message,
} from "@bufbuild/protobuf";
import type {
	ContextValues,
	HandlerContext,
	Interceptor,
	StreamRequest,
	UnaryRequest,
} from "@connectrpc/connect";
import {
	chainInterceptors,
	mapResults,
	onlyMessage,
	replaceHeaders,
	streamOfOne,
} from "@plinth/transport";

/**
 * Runs the handler of a unary method inside the interceptors of its side. Their changes to the headers and trailers of
 * the response are made in the context.
 *
 * @throws whatever the handler or an interceptor throws.
 */
export async function interceptUnary(
	interceptors: readonly Interceptor[],
	method: DescMethodUnary,
	context: HandlerContext,
	message: Message,
	handler: (message: Message, context: HandlerContext) => Promise<Message>,
): Promise<Message> {
	const request: UnaryRequest = {
		...requestOf(context),
		// A spread would create it.
		get signal() {
			return context.signal;
		},
		stream: false,
		method,
		message,
	};
	const call = chainInterceptors(interceptors, async (forwarded) => {
		if (forwarded.stream) {
			throw changedKind(method);
		}
		return {
			stream: false,
			service: context.service,
			method,
			message: await handler(forwarded.message, contextOf(forwarded, request, context)),
			header: context.responseHeader,
			trailer: context.responseTrailer,
		};
	});
	const response = await call(request);
	if (response.stream) {
		throw changedKind(method);
	}
	replaceHeaders(context.responseHeader, response.header);
	replaceHeaders(context.responseTrailer, response.trailer);
	return response.message;
}

/** Runs `handler` inside the interceptors of its side, up to the point where its messages can be pulled. */
export async function interceptStream(
	interceptors: readonly Interceptor[],
	method: DescMethodServerStreaming,
	context: HandlerContext,
	message: Message,
	handler: (message: Message, context: HandlerContext) => AsyncIterable<Message>,
): Promise<AsyncIterable<Message>> {
	const request: StreamRequest = {
		...requestOf(context),
		get signal() {
			return context.signal;
		},
		stream: true,
		method,
		message: streamOfOne(message),
	};
	const call = chainInterceptors(interceptors, async (forwarded) => {
		if (!forwarded.stream) {
			throw changedKind(method);
		}
		return {
			stream: true,
			service: context.service,
			method,
			message: handler(
				await onlyMessage(forwarded.message),
				contextOf(forwarded, request, context),
			),
			header: context.responseHeader,
			trailer: context.responseTrailer,
		};
	});
	const response = await call(request);
	if (!response.stream) {
		throw changedKind(method);
	}
	replaceHeaders(context.responseHeader, response.header);
	return mapResults(response.message, (result) => {
		if (result.done === true) {
			replaceHeaders(context.responseTrailer, response.trailer);
		}
		return result;
	});
}

function requestOf(context: HandlerContext) {
	return {
		service: context.service,
		requestMethod: context.requestMethod,
		url: context.url,
		header: context.requestHeader,
		contextValues: context.values,
	};
}

function changedKind(method: DescMethod): Error {
	return new Error(
		`an interceptor of ${method.parent.typeName}.${method.name} responded to a unary call with a stream, or the reverse`,
	);
}

/** The context for the handler, after interceptors may have replaced the request. */
function contextOf(
	forwarded: UnaryRequest | StreamRequest,
	original: UnaryRequest | StreamRequest,
	context: HandlerContext,
): HandlerContext {
	return forwarded === original ? context : new InterceptedContext(context, forwarded);
}

/** A context with the fields of the request that interceptors passed on. */
class InterceptedContext implements HandlerContext {
	readonly #context: HandlerContext;
	readonly #request: UnaryRequest | StreamRequest;

	constructor(context: HandlerContext, request: UnaryRequest | StreamRequest) {
		this.#context = context;
		this.#request = request;
	}

	get service(): DescService {
		return this.#request.service;
	}

	get requestHeader(): Headers {
		return this.#request.header;
	}

	get signal(): AbortSignal {
		return this.#request.signal;
	}

	get values(): ContextValues {
		return this.#request.contextValues;
	}

	get method(): DescMethod {
		return this.#context.method;
	}

	get protocolName(): string {
		return this.#context.protocolName;
	}

	get requestMethod(): string {
		return this.#context.requestMethod;
	}

	get url(): string {
		return this.#context.url;
	}

	get responseHeader(): Headers {
		return this.#context.responseHeader;
	}

	get responseTrailer(): Headers {
		return this.#context.responseTrailer;
	}

	get timeoutMs(): () => number | undefined {
		return this.#context.timeoutMs;
	}
}
