import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { answerText, headersOf, pathOf, type RequestHandler } from "./request-handler.ts";

/** What `/metrics` answers. */
export interface MetricsEndpoint {
	readonly contentType: string;
	/** @throws ConnectError where the headers carry no token that may read metrics. */
	authorize(header: Headers): Promise<void>;
	text(): Promise<string>;
}

/**
 * The paths that are plain HTTP. `/healthz`: the process answers. `/readyz`: it can do its work, or why not.
 * `/metrics`: what it measures. Any other path is answered 404 with the paths that there are.
 */
export function createPlainEndpoints(
	router: ConnectRouter,
	problems: () => readonly string[],
	metrics?: MetricsEndpoint,
): RequestHandler {
	const services = [...new Set(router.handlers.map((handler) => handler.service.typeName))].sort();
	const directions = `Methods are at /<service>/<method>, over Connect, gRPC or gRPC-Web, of: ${services.join(", ")}. Plain HTTP: /healthz, /readyz${metrics === undefined ? "" : ", /metrics"}.`;
	const notFound: RequestHandler = (request, response) =>
		answerText(response, 404, `there is nothing at ${pathOf(request)}. ${directions}`);
	return (request, response) => {
		switch (pathOf(request)) {
			case "/healthz":
				answerText(response, 200, "ok");
				break;
			case "/readyz":
				answerReadiness(response, problems());
				break;
			case "/":
				answerText(response, 200, `This is a Plinth server. ${directions}`);
				break;
			case "/metrics":
				if (metrics === undefined) {
					notFound(request, response);
					break;
				}
				answerMetrics(metrics, headersOf(request)).then(
					(text) => answerText(response, 200, text, metrics.contentType),
					(failure: unknown) => answerFailure(response, failure),
				);
				break;
			default:
				notFound(request, response);
		}
	};
}

function answerReadiness(
	response: Parameters<RequestHandler>[1],
	problems: readonly string[],
): void {
	if (problems.length === 0) {
		answerText(response, 200, "ready");
	} else {
		answerText(response, 503, ["not ready", ...problems].join("\n"));
	}
}

async function answerMetrics(metrics: MetricsEndpoint, header: Headers): Promise<string> {
	await metrics.authorize(header);
	return metrics.text();
}

function answerFailure(response: Parameters<RequestHandler>[1], failure: unknown): void {
	const { code, rawMessage } = ConnectError.from(failure, Code.Internal);
	switch (code) {
		case Code.Unauthenticated:
			answerText(response, 401, rawMessage);
			break;
		case Code.PermissionDenied:
			answerText(response, 403, rawMessage);
			break;
		case Code.Unavailable:
			answerText(response, 503, rawMessage);
			break;
		default:
			answerText(response, 500, "internal error");
	}
}
