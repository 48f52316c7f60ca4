import { create, type DescMessage, type DescMethodStreaming } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import { Deadlines, systemClock, systemRandom } from "@plinth/runtime";
import {
	type CallRequest,
	type CancelableTransport,
	createCallRequest,
	failedStream,
	InterceptedStream,
	interceptUnary,
	mapResults,
	type OpenStream,
	onlyMessage,
	type RequestMessages,
	type TransportSettings,
} from "@plinth/transport";
import type { CallEnvironment } from "./call/call-environment.ts";
import { RequestHead } from "./call/request-head.ts";
import { StreamCall } from "./call/stream-call.ts";
import { callUnary } from "./call/unary-call.ts";
import type { PlinthTransportOptions } from "./options.ts";
import { Connection } from "./session/connection.ts";
import { OneSession } from "./session/one-session.ts";

/** The transport of this package. */
export interface PlinthTransport extends CancelableTransport {
	/** Closes the connection. Open calls, and later ones, fail with `reason`: Canceled by default. */
	close(reason?: ConnectError): void;
	/**
	 * A transport that makes all its calls on one connection of this one: what the server has proven in one call is true of the
	 * next. Once that connection accepts no more calls, they fail with Unavailable.
	 */
	onOneConnection(): OneConnectionTransport;
}

/** A transport on one connection. */
export interface OneConnectionTransport extends CancelableTransport {
	/** The same connection, with another limit on messages in responses. */
	reading(maxBytes: number): CancelableTransport;
}

/** The largest message that a gRPC prefix can announce. */
const maxMessageBytes = 0xffff_ffff;

/**
 * A transport to a server that speaks gRPC over HTTP/2, with TLS or without. It connects when there is a call,
 * and shares one connection between all calls.
 *
 * The headers, trailers and signal of a response are created on first access.
 *
 * @throws TypeError if `baseUrl` is not a URL.
 */
export function createPlinthTransport(options: PlinthTransportOptions): PlinthTransport {
	const { connection, ...environment } = environmentOf(options);
	const settings: TransportSettings = {
		clock: environment.clock,
		interceptors: options.interceptors ?? [],
		baseUrl: options.baseUrl.replace(/\/+$/, ""),
		defaultTimeoutMs: options.defaultTimeoutMs,
	};
	return {
		...transportOn({ ...environment, connection }, settings),
		onOneConnection: () => {
			const one = { ...environment, connection: new OneSession(connection) };
			return {
				...transportOn(one, settings),
				reading: (readMaxBytes) =>
					transportOn({ ...one, messages: { ...one.messages, readMaxBytes } }, settings),
			};
		},
		close: (reason) =>
			connection.close(() => reason ?? new ConnectError("the transport was closed", Code.Canceled)),
	};
}

function transportOn(
	environment: CallEnvironment,
	settings: TransportSettings,
): CancelableTransport {
	const isIntercepted = settings.interceptors.length > 0;
	const open = <I extends DescMessage, O extends DescMessage>(
		method: DescMethodStreaming<I, O>,
		request: CallRequest,
		messages: RequestMessages<I>,
		contextValues: ContextValues | undefined,
	): OpenStream<I, O> => {
		const call = (inner: CallRequest, sent: RequestMessages<I>) =>
			new StreamCall(environment, method, inner, sent);
		return isIntercepted
			? new InterceptedStream(settings, method, request, contextValues, messages, call)
			: call(request, messages);
	};
	return {
		unary: async (method, signal, timeoutMs, header, input, contextValues) => {
			const request = createCallRequest(settings, signal, timeoutMs, header);
			return isIntercepted
				? interceptUnary(settings, method, request, contextValues, input, (inner, message) =>
						callUnary(environment, method, inner, message),
					)
				: callUnary(environment, method, request, create(method.input, input));
		},
		stream: async (method, signal, timeoutMs, header, input, contextValues) => {
			const request = createCallRequest(settings, signal, timeoutMs, header);
			const { input: desc } = method;
			const messages: RequestMessages<typeof desc> =
				method.methodKind === "server_streaming"
					? { kind: "one", message: create(desc, await onlyMessage(input)) }
					: {
							kind: "many",
							messages: mapResults(input, (result) =>
								result.done === true ? result : { done: false, value: create(desc, result.value) },
							),
						};
			return open(method, request, messages, contextValues).response;
		},
		openStream: (method, signal, timeoutMs, header, input, contextValues) => {
			try {
				const request = createCallRequest(settings, signal, timeoutMs, header);
				const message = create(method.input, input);
				return open(method, request, { kind: "one", message }, contextValues);
			} catch (error) {
				return failedStream(error);
			}
		},
	};
}

function environmentOf(
	options: PlinthTransportOptions,
): CallEnvironment & { readonly connection: Connection } {
	const { clock = systemClock, random = systemRandom } = options;
	const url = new URL(options.baseUrl);
	return {
		clock,
		connection: new Connection(url.origin, options, clock, random),
		deadlines: new Deadlines(clock),
		head: new RequestHead(url, clock, options.headers ?? {}),
		messages: {
			readMaxBytes: options.readMaxBytes ?? maxMessageBytes,
			writeMaxBytes: options.writeMaxBytes ?? maxMessageBytes,
			binary: options.binaryOptions,
		},
	};
}
