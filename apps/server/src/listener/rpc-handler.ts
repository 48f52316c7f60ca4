import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import type { RpcRouter } from "@plinth/rpc-server";
import type { Logger } from "@plinth/runtime";
import type { MeteredRequest, RequestMeter } from "../decoding/request-meter.ts";
import { hasAuthority } from "./authority.ts";
import type { Exchange } from "./exchange.ts";
import { ExchangeCarrier } from "./exchange-carrier.ts";
import type { Exchanges } from "./exchanges.ts";
import {
	type HttpRequest,
	type HttpResponse,
	headersOf,
	pathOf,
	type RequestHandler,
	sendText,
} from "./request-handler.ts";
import { sendResponse, withDirections } from "./send-response.ts";

/** Serves a path instead of the router. */
export type ExchangeHandler = (
	exchange: Exchange,
	request: HttpRequest,
	response: HttpResponse,
) => void;

/** Serves paths that are not of methods. */
export interface PageHandler {
	/** Whether it serves the path. */
	has(path: string): boolean;
	/** Serves a request, and settles its exchange. */
	readonly serve: ExchangeHandler;
}

/** Options of `createRpcHandler`. */
export interface RpcHandlerOptions {
	readonly router: RpcRouter;
	/** Handles requests to paths that are not of methods. */
	readonly fallback: RequestHandler;
	readonly exchanges: Exchanges;
	/** Handlers of methods that the router does not serve, by path. */
	readonly special?: ReadonlyMap<string, ExchangeHandler>;
	/** Serves its paths instead of `fallback`. */
	readonly pages?: PageHandler;
	readonly logger: Logger;
	/** Meters the bodies of requests. */
	readonly meter?: Pick<RequestMeter, "bodyOf" | "turnOf" | "freeBytesOf" | "meterFree">;
}

/**
 * Serves the methods of a router. Unlike Connect's own adapter, it responds to a request without a valid authority
 * instead of throwing, counts unread response bytes, and ends calls whose client reads too slowly.
 */
export function createRpcHandler(options: RpcHandlerOptions): RequestHandler {
	const { router, fallback, exchanges, special, pages, logger, meter } = options;
	const methods = new Map<string, UniversalHandler>(
		router.handlers.map((handler) => [handler.requestPath, handler]),
	);
	return (request, response) => {
		const unsupported = statusOfUnsupported(request);
		if (unsupported !== undefined) {
			exchanges.beginPlain(request, response);
			response.writeHead(unsupported);
			response.end();
			return;
		}
		const path = pathOf(request);
		const handler = methods.get(path);
		if (handler === undefined) {
			const exchange = exchanges.begin("plain", request, response);
			if (pages?.has(path)) {
				pages.serve(exchange, request, response);
				return;
			}
			fallback(request, response);
			exchange.wrote();
			return;
		}
		const exchange = exchanges.begin(handler.method.methodKind, request, response);
		const serve = special?.get(path);
		if (serve !== undefined) {
			serve(exchange, request, response);
			return;
		}
		const plan = hasAuthority(request) ? router.plan(path, request) : undefined;
		if (plan !== undefined) {
			const { method } = handler;
			router.serve(plan, new ExchangeCarrier({ head: request, method, exchange, response, meter }));
			return;
		}
		const call = universalRequest(exchange, request, handler.method, meter);
		if (call === undefined) {
			sendText(response, 400, "the request needs a Host header that is a host name");
			exchange.wrote();
			return;
		}
		handler(call)
			.then((result) =>
				request.method === "HEAD" ? result : withDirections(result, handler.method.methodKind),
			)
			.then((result) =>
				sendResponse(result, exchange, response, meter && (() => meter.turnOf(call))),
			)
			.catch((failure: unknown) => {
				const { code } = ConnectError.from(failure);
				if (exchange.isClosed || code === Code.Aborted || code === Code.Canceled) {
					logger.debug({ path, err: failure }, "a call ended before its response was read");
				} else {
					logger.warn({ path, err: failure }, "the response of a call could not be sent");
				}
				exchange.destroy();
			})
			.finally(() => exchange.settled());
	};
}

/** The status for a request that needs what no handler provides: a tunnel, or an unknown expectation. */
function statusOfUnsupported(request: HttpRequest): number | undefined {
	if (request.method === "CONNECT") {
		return 405;
	}
	const expected = request.header("expect");
	return expected === undefined || expected.toLowerCase() === "100-continue" ? undefined : 417;
}

/** The request in the form that Connect handles; `undefined` if its authority is missing or malformed. */
function universalRequest(
	exchange: Exchange,
	request: HttpRequest,
	method: DescMethod,
	meter: Pick<RequestMeter, "bodyOf"> | undefined,
): (UniversalServerRequest & Pick<MeteredRequest, "contextValues">) | undefined {
	const head = requestHead(request);
	if (head === undefined) {
		return undefined;
	}
	const { header } = head;
	const { body, signal } = exchange;
	const contextValues = exchange.contextValues();
	return {
		...head,
		body: meter?.bodyOf({ method, header, body, contextValues, signal, exchange }) ?? body,
		signal,
		contextValues,
	};
}

/** The head of a request in the form that Connect handles; `undefined` if its authority is missing or malformed. */
export function requestHead(
	request: HttpRequest,
): Pick<UniversalServerRequest, "httpVersion" | "method" | "url" | "header"> | undefined {
	const { httpVersion, method, url } = request;
	return url === "" ? undefined : { httpVersion, method, url, header: headersOf(request) };
}
