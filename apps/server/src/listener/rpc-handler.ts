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
		// A response of HTTP/2 tells of its end only when all of the stream has ended.
		const answered = "stream" in response ? response.stream : response;
		// What was not read of the request, and what is to come yet, is thrown away: neither a connection
		// of HTTP/1.1 nor a stream of HTTP/2 is done with before all of it was read.
		answered.once("finish", () => request.resume());
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
