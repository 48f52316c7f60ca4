import type { ConnectRouter } from "@connectrpc/connect";
import { answerText, pathOf, type RequestHandler } from "./request-handler.ts";

/**
 * The paths that are plain HTTP. `/healthz`: the process answers. `/readyz`: it takes calls. Any other
 * path is answered 404 with the paths that there are.
 */
export function createPlainEndpoints(
	router: ConnectRouter,
	isReady: () => boolean,
): RequestHandler {
	const services = [...new Set(router.handlers.map((handler) => handler.service.typeName))].sort();
	const directions = `Methods are at /<service>/<method>, over Connect, gRPC or gRPC-Web, of: ${services.join(", ")}. Plain HTTP: /healthz, /readyz.`;
	return (request, response) => {
		switch (pathOf(request)) {
			case "/healthz":
				answerText(response, 200, "ok");
				break;
			case "/readyz":
				answerText(response, isReady() ? 200 : 503, isReady() ? "ready" : "not ready");
				break;
			case "/":
				answerText(response, 200, `This is a Plinth server. ${directions}`);
				break;
			default:
				answerText(response, 404, `there is nothing at ${pathOf(request)}. ${directions}`);
		}
	};
}
