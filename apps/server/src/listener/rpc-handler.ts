import { constants } from "node:http2";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import type { UniversalHandlerFn } from "@connectrpc/connect/protocol";
import {
	universalRequestFromNodeRequest,
	universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "@plinth/runtime";
import { answerText, pathOf, type RequestHandler } from "./request-handler.ts";

/**
 * Answers requests to the methods of a router, and gives the others to `otherwise`. Unlike Connect's
 * own adapter, it answers a request that has no usable authority instead of throwing, and logs
 * through the given logger.
 */
export function createRpcHandler(
	router: ConnectRouter,
	otherwise: RequestHandler,
	logger: Logger,
): RequestHandler {
	const methods = new Map<string, UniversalHandlerFn>(
		router.handlers.map((handler) => [handler.requestPath, handler]),
	);
	return (request, response) => {
		const path = pathOf(request);
		const method = methods.get(path);
		if (method === undefined) {
			otherwise(request, response);
			return;
		}
		let universalRequest: ReturnType<typeof universalRequestFromNodeRequest>;
		try {
			universalRequest = {
				...universalRequestFromNodeRequest(request, response, undefined, undefined),
				body: bodyOf(request),
			};
		} catch {
			answerText(response, 400, "the request needs a Host header that is a host name");
			return;
		}
		response.once("finish", () => letGoOf(request));
		method(universalRequest)
			.then((answer) => universalResponseToNodeResponse(answer, response))
			.catch((failure: unknown) => {
				const { code } = ConnectError.from(failure);
				if (code === Code.Aborted || code === Code.Canceled) {
					logger.debug({ path }, "the client went away");
				} else {
					logger.warn({ path, err: failure }, "a call could not be answered");
				}
				response.destroy();
			});
	};
}

/**
 * What a request sends. Whoever stops reading leaves the request as it is: an answer is to come yet, and
 * over HTTP/1.1 others after it on the same connection.
 */
function bodyOf(request: Parameters<RequestHandler>[0]): AsyncIterable<Uint8Array> {
	return { [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) };
}

/**
 * Ends a request that was answered before all of it had come, as one that is too large: what is still
 * to come is not kept, and does not keep the client from reading the answer.
 */
function letGoOf(request: Parameters<RequestHandler>[0]): void {
	// What is there and what comes is thrown away, for as long as a request may take: neither a
	// connection of HTTP/1.1 nor a stream of HTTP/2 is done with before it was read.
	request.resume();
	if (!request.complete && "stream" in request) {
		// Tells the client to stop sending, and that this is no failure (RFC 9113, section 8.1).
		request.stream.close(constants.NGHTTP2_NO_ERROR);
	}
}
