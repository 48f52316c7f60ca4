import { Code, ConnectError } from "@connectrpc/connect";
import type { Forwarder } from "@plinth/forwarding";
import { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import type { ExchangeKind } from "../listener/exchange.ts";
import type { Exchanges } from "../listener/exchanges.ts";
import { malformedHostRefusal } from "../listener/origin/origin-check.ts";
import { type RequestRefusal, refuseRequest } from "../listener/refuse-request.ts";
import {
	type HttpRequest,
	pathOf,
	type RequestHandler,
	sendText,
} from "../listener/request-handler.ts";
import { type Metrics, prometheusType } from "../operations/metrics.ts";
import type { AgentCache } from "./cache/agent-cache.ts";
import type { Discovery, DiscoveryStatus } from "./discovery/discovery.ts";
import { ExchangeCall } from "./exchange-call.ts";
import { knownMethod } from "./known-methods.ts";
import type { OwnSecret } from "./own-secret.ts";

/** Options of `createAgentHandler`. */
export interface AgentHandlerOptions {
	readonly forwarder: Forwarder;
	/** Finds servers, if the agent has more than those that it was given. */
	readonly discovery: Discovery | undefined;
	readonly exchanges: Exchanges;
	readonly metrics: Pick<Metrics, "prometheus">;
	/** Serves calls of clients, if the agent has caches. */
	readonly cache?: Pick<AgentCache, "serve" | "types"> | undefined;
	/**
	 * If set, all calls are those of the agent itself, and carry this secret: they are forwarded, with AgentCacheService among them,
	 * also while the agent stops. Others are refused.
	 */
	readonly ownSecret?: OwnSecret;
	/** Whether the agent stops: then it is not ready, and refuses new calls of clients. */
	readonly isStopping: () => boolean;
}

const countsForNothingElse = { leave: () => {} };

/** Handles the paths of an agent itself, and forwards all other requests. */
export function createAgentHandler(options: AgentHandlerOptions): RequestHandler {
	const { forwarder, discovery, exchanges, metrics, isStopping, cache, ownSecret } = options;
	const isOwn = ownSecret !== undefined;
	const plain = new Map<string, RequestHandler>([
		["/healthz", (_, response) => sendText(response, 200, "ok")],
		[
			"/readyz",
			(_, response) => {
				const isReady = forwarder.isReady && !isStopping();
				const lines = [readiness(forwarder, discovery, isStopping()), ...cacheLines(cache)];
				sendText(response, isReady ? 200 : 503, lines.join("\n"));
			},
		],
		[
			"/metrics",
			(_, response) => {
				metrics.prometheus().then(
					(text) => sendText(response, 200, text, prometheusType),
					() => sendText(response, 500, "internal error"),
				);
			},
		],
	]);
	return (request, response) => {
		if (ownSecret?.isIn(request) === false) {
			exchanges.beginPlain(request, response);
			refuseRequest(request, response, notOwn);
			return;
		}
		const own = plain.get(pathOf(request));
		if (own !== undefined || request.method === "CONNECT" || request.authority === undefined) {
			exchanges.beginPlain(request, response);
			if (request.method === "CONNECT") {
				sendText(response, 405, "an agent forwards calls, and opens no tunnels");
			} else if (own === undefined) {
				sendText(response, 400, "the request needs a Host header that is a host name");
			} else {
				own(request, response);
			}
			return;
		}
		const refusal = malformedHostRefusal(request);
		if (refusal !== undefined) {
			exchanges.beginPlain(request, response);
			refuseRequest(request, response, refusal);
			return;
		}
		const exchange = exchanges.begin(kindOf(request), request, response);
		// The limits of the forwarder and of the cache count it.
		exchange.admit(countsForNothingElse);
		const forward = () => {
			const call = new ExchangeCall(exchange, request, response, isOwn);
			if (isOwn) {
				forwarder.forwardOwn(call);
				return;
			}
			const isRefused = pathOf(request).startsWith(pathOfCacheService);
			forwarder.forward(call, isStopping() ? stopping() : isRefused ? onlyForAgents() : undefined);
		};
		if (cache === undefined || isStopping()) {
			forward();
		} else {
			cache.serve(exchange, request, response, forward);
		}
	};
}

const notOwn: RequestRefusal = {
	code: Code.Unauthenticated,
	message: "this port is for the agent itself: call the port of --listen",
};

const pathOfCacheService = `/${AgentCacheService.typeName}/`;

/** The agent's credential is for its own calls of that service. */
function onlyForAgents(): ConnectError {
	return new ConnectError(
		`${AgentCacheService.typeName} is for agents: it is not forwarded`,
		Code.Unimplemented,
	);
}

/** What `/readyz` says about caches. Everybody may read it: why one is not used is in the log alone. */
function cacheLines(cache: AgentHandlerOptions["cache"]): readonly string[] {
	return [...(cache?.types ?? [])].map(({ key, service }) =>
		service === undefined
			? `cache of ${key}: not used, calls are forwarded: see the log`
			: `cache of ${key}: used`,
	);
}

function stopping(): ConnectError {
	return new ConnectError("the agent is stopping: call another one", Code.Unavailable);
}

/** How long the request of a call may take, as far as the agent knows its method. */
function kindOf(request: HttpRequest): ExchangeKind {
	const known = knownMethod(pathOf(request))?.methodKind;
	if (known !== undefined) {
		return known;
	}
	// A method of a module, which may have a stream of requests: then no message may be late, rather than the end.
	const isEnveloped = /^application\/(?:grpc|connect\+)/.test(request.header("content-type") ?? "");
	return isEnveloped ? "bidi_streaming" : "unary";
}

/** What `/readyz` says. */
function readiness(
	forwarder: Forwarder,
	discovery: Discovery | undefined,
	isStopping: boolean,
): string {
	const lines = forwarder.status().map(({ address, state, lastError, isRemoved, calls }) => {
		if (isRemoved) {
			return `${address}: removed: ${calls} calls have not ended`;
		}
		return state === "healthy" ? `${address}: ready` : `${address}: not ready: ${lastError}`;
	});
	const isReady = forwarder.isReady && !isStopping;
	return [
		isReady ? "ready" : "not ready",
		...(isStopping ? ["the agent is stopping"] : []),
		...lines,
		...(discovery === undefined ? [] : [discoveryLine(discovery.status())]),
	].join("\n");
}

function discoveryLine({ source, servers, foundAtMs, problem }: DiscoveryStatus): string {
	const found =
		foundAtMs === undefined
			? "nothing was found yet"
			: `${servers} ${servers === 1 ? "server was" : "servers were"} found at ${new Date(foundAtMs).toISOString()}`;
	return `${source}: ${found}${problem === "" ? "" : `; since then: ${problem}`}`;
}
