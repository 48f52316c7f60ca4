import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import {
	type HttpResponse,
	headersOf,
	pathOf,
	type RequestHandler,
	sendText,
} from "./request-handler.ts";

/** Serves `/metrics`. */
export interface MetricsEndpoint {
	readonly contentType: string;
	/** @throws ConnectError if the headers contain no token with access to metrics. */
	authorize(header: Headers): Promise<void>;
	text(): Promise<string>;
}

/** What `/readyz` says. The server is ready if there are no problems. */
export interface ReadinessReport {
	/** Why the server is not ready, a line each. */
	readonly problems: readonly string[];
	/** What is still to be done, a line each. It does not make the server unready. */
	readonly pending: readonly string[];
}

/**
 * Serves the paths of plain HTTP. `/healthz`: the process is running. `/readyz`: the server is ready, or why it is not.
 * `/metrics`: its measurements. Any other path gets 404, with a list of the paths that exist.
 */
export function createPlainEndpoints(
	router: ConnectRouter,
	readiness: () => ReadinessReport,
	metrics?: MetricsEndpoint,
): RequestHandler {
	const services = [...new Set(router.handlers.map((handler) => handler.service.typeName))].sort();
	const directions = `Methods are at /<service>/<method>, over Connect, gRPC or gRPC-Web, of: ${services.join(", ")}. Plain HTTP: /healthz, /readyz${metrics === undefined ? "" : ", /metrics"}. For people: /console/.`;
	const notFound: RequestHandler = (request, response) =>
		sendText(response, 404, `not found: ${pathOf(request)}. ${directions}`);
	return (request, response) => {
		switch (pathOf(request)) {
			case "/healthz":
				sendText(response, 200, "ok");
				break;
			case "/readyz":
				sendReadiness(response, readiness());
				break;
			case "/":
				sendText(response, 200, `This is a Plinth server. ${directions}`);
				break;
			case "/metrics":
				if (metrics === undefined) {
					notFound(request, response);
					break;
				}
				readMetrics(metrics, headersOf(request)).then(
					(text) => sendText(response, 200, text, metrics.contentType),
					(failure: unknown) => sendFailure(response, failure),
				);
				break;
			default:
				notFound(request, response);
		}
	};
}

function sendReadiness(response: HttpResponse, { problems, pending }: ReadinessReport): void {
	const isReady = problems.length === 0;
	const lines = [isReady ? "ready" : "not ready", ...problems, ...pending];
	sendText(response, isReady ? 200 : 503, lines.join("\n"));
}

async function readMetrics(metrics: MetricsEndpoint, header: Headers): Promise<string> {
	await metrics.authorize(header);
	return metrics.text();
}

function sendFailure(response: HttpResponse, failure: unknown): void {
	const { code, rawMessage } = ConnectError.from(failure, Code.Internal);
	switch (code) {
		case Code.Unauthenticated:
			sendText(response, 401, rawMessage);
			break;
		case Code.PermissionDenied:
			sendText(response, 403, rawMessage);
			break;
		case Code.Unavailable:
			sendText(response, 503, rawMessage);
			break;
		default:
			sendText(response, 500, "internal error");
	}
}
