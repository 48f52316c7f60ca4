import { Code, ConnectError } from "@connectrpc/connect";
import { type References, type ReferencesState, referencesPhases } from "@plinth/db-constraint";
import { openForAgents } from "../agents-listener/open-for-agents.ts";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { ConsoleBuildProcess } from "../console/console-build.ts";
import { createConsolePages } from "../console/console-pages.ts";
import { installedConsole } from "../console/installed-console.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { checkOrigin } from "../listener/origin/origin-check.ts";
import { createPlainEndpoints, type ReadinessReport } from "../listener/plain-endpoints.ts";
import type { RequestHandler } from "../listener/request-handler.ts";
import { createRpcHandler, type PageHandler } from "../listener/rpc-handler.ts";
import { takeTurns } from "../listener/take-turns.ts";
import { metricsEndpoint } from "../operations/metrics-endpoint.ts";
import type { Readiness } from "../operations/readiness.ts";
import { defaultListen } from "../server-options.ts";
import { healthStatus } from "../services/health-service.ts";
import { HealthWatches } from "../services/health-watches.ts";
import { type Interfaces, tokenlessMessageBytes } from "../services/register-services.ts";
import type { RequestLimits } from "./request-limits.ts";
import type { StartContext } from "./start-context.ts";
import type { Telemetry } from "./start-telemetry.ts";
import type { ValidatedOptions } from "./validate-options.ts";

/** Options of `openPublicListener`. */
export interface PublicListenerOptions
	extends Pick<ValidatedOptions, "authorizer" | "origins" | "tls" | "agentSecrets">,
		Pick<RequestLimits, "turns" | "exchanges" | "meter">,
		Pick<Telemetry, "metrics" | "calls"> {
	readonly interfaces: Pick<Interfaces, "external">;
	readonly readiness: Readiness;
	readonly references: Pick<References, "state">;
}

/** How long calls that were aborted have to send their errors before their connections are closed. */
export const closeAfterMs = 1_000;

/**
 * Opens the port for clients, and the one for their agents, if there is one. Until the server accepts calls, only the plain endpoints and the health service respond.
 *
 * @throws ListenError.
 */
export async function openPublicListener(
	context: StartContext,
	options: PublicListenerOptions,
): Promise<Listener> {
	const { limits, callLimits, runtime, logger, started, callsEnd, stopLimitMs } = context;
	const { interfaces, authorizer, origins, tls, turns, exchanges, meter, readiness } = options;
	const { metrics, calls } = options;
	const { clock } = runtime;
	const healthWatches = createHealthWatches(context, options);
	const plainEndpoints = createPlainEndpoints(
		interfaces.external,
		() => readinessReport(context.acceptsCalls(), readiness, options.references.state),
		metricsEndpoint(metrics, authorizer),
	);
	const rpcHandler = createRpcHandler({
		router: interfaces.external,
		fallback: plainEndpoints,
		exchanges,
		special: new Map([[healthWatches.path, healthWatches.serve]]),
		...(context.options.console !== false && { pages: consolePages(context) }),
		logger,
		meter,
	});
	const originHandler = checkOrigin(
		{ ...origins, onRefused: calls.requestRefused, onResponse: exchanges.beginPlain },
		rpcHandler,
	);
	const handler = takeTurns(
		{
			turns,
			connectionOf: (request) => exchanges.connectionOf(request),
			waitingPerCaller: Math.max(callLimits.callsInFlight, limits.streamsPerConnection),
			clock,
			onRefused: () => calls.requestRefused("waiting"),
			onResponse: exchanges.beginPlain,
		},
		originHandler,
	);
	const listener = await openListener({
		address: context.options.listen ?? defaultListen,
		...{ limits, clock, logger, handler },
		...(tls && { tls: tls.material }),
		...(context.options.http2 && { http2: context.options.http2 }),
	});
	tls?.follow(listener);
	const forAgents = await openAgentsPort(context, options, handler).catch(
		async (failure: unknown) => {
			await listener.close(0);
			throw failure;
		},
	);
	metrics.meter
		.createObservableGauge("plinth.connections", { description: "Open connections" })
		.addCallback((result) => result.observe(listener.connections + (forAgents?.connections ?? 0)));
	started.defer(async () => {
		const tooLong = new ConnectError(
			"the server is stopping, and the call took too long",
			Code.Unavailable,
		);
		const abortCalls = clock.setTimer(stopLimitMs, () => callsEnd.abort(tooLong));
		const limitMs = stopLimitMs + closeAfterMs;
		await Promise.all([listener.close(limitMs), forAgents?.close(limitMs)]);
		abortCalls.cancel();
	});
	return listener;
}

/** Opens the port for agents, if there is one. */
async function openAgentsPort(
	{ options: { agents, http2 }, limits, runtime, logger }: StartContext,
	{ agentSecrets: secrets, exchanges, tls }: PublicListenerOptions,
	handler: RequestHandler,
): Promise<Listener | undefined> {
	if (agents === undefined || secrets === undefined) {
		return undefined;
	}
	const listener = await openForAgents({
		...{ agents, secrets, tls, limits, clock: runtime.clock, logger, handler },
		...(http2 && { http2 }),
		onRefused: exchanges.beginPlain,
	});
	logger.info({ address: formatListenAddress(listener.address) }, "listens for agents");
	return listener;
}

function createHealthWatches(
	{ limits, runtime, logger, streamsEnd, acceptsCalls }: StartContext,
	{ interfaces, readiness, calls }: PublicListenerOptions,
): HealthWatches {
	const watches = new HealthWatches({
		...{ limits, clock: runtime.clock, logger, streamsEnd, messageBytes: tokenlessMessageBytes },
		statusOf: healthStatus({
			services: () => interfaces.external.handlers.map(({ service }) => service.typeName),
			isReady: () => acceptsCalls() && readiness.isReady,
		}),
	});
	calls.observeHealth(watches);
	return watches;
}

function readinessReport(
	acceptsCalls: boolean,
	{ reasons }: Readiness,
	{ reached, problems, awaitedReports = [] }: ReferencesState,
): ReadinessReport {
	const blocked = [...reasons].map(([part, reason]) => `${part}: ${reason}`);
	const next = referencesPhases.find((phase) => !reached.includes(phase));
	// Everybody may read this. Problems name other deployments and their addresses, so they are in the log alone.
	const failing = [...problems.keys()].map((step) => `; the log says why it can't ${step}`);
	return {
		problems: acceptsCalls ? blocked : ["the server is starting or stopping", ...blocked],
		pending: [
			...(next === undefined ? [] : [`references: not ${next} yet${failing.join("")}`]),
			...(awaitedReports.length === 0 ? [] : [recovery(awaitedReports)]),
		],
	};
}

/** What a restored meta deployment waits for, and what operators can do. */
function recovery(awaited: readonly string[]): string {
	const named = awaited.slice(0, namedReports).join(", ");
	const more = awaited.length - namedReports;
	const others = more > 0 ? `, and ${more} more` : "";
	return `references: this meta deployment was restored, and waits until these deployments have reported what they know: ${named}${others}. Start their servers, or delete the Deployments of those that no longer exist`;
}

/** So many deployments are named. */
const namedReports = 10;

/** The console, which is built if it is not. */
function consolePages({ logger, started }: StartContext): PageHandler {
	const build = new ConsoleBuildProcess(logger);
	started.defer(() => build.stop());
	return createConsolePages({ installed: installedConsole, build, logger });
}
