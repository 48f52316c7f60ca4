import { metaService } from "@plinth/db-constraint";
import type { RequestMeter } from "../decoding/request-meter.ts";
import { exchangeOf } from "../listener/exchange.ts";
import { Exchanges, type ExchangesOptions } from "../listener/exchanges.ts";
import type { Http2Implementation } from "../listener/http2/http2-server.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { checkOrigin } from "../listener/origin/origin-check.ts";
import { sendText } from "../listener/request-handler.ts";
import { createRpcHandler } from "../listener/rpc-handler.ts";
import type { FollowedTls } from "../listener/tls/followed-tls.ts";
import type { DeploymentOptions } from "./deployment-options.ts";
import { createInternalRouter, type InternalRouterOptions } from "./internal-router.ts";
import type { PeerConnections } from "./peer-connections.ts";

/** Options of `openInternal`. */
export interface InternalOptions
	extends Pick<
		InternalRouterOptions,
		"mixin" | "copies" | "store" | "runtime" | "logger" | "callsEnd"
	> {
	readonly deployment: DeploymentOptions;
	readonly peers: Pick<PeerConnections, "credential">;
	readonly limits: ListenerLimits;
	readonly http2: Http2Implementation | undefined;
	readonly tls: FollowedTls | undefined;
	readonly meter: RequestMeter;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Called when the server ends a call early. */
	readonly onCut?: ExchangesOptions["onCut"];
}

/** Opens the port for other deployments. @throws ListenError. */
export async function openInternal(options: InternalOptions): Promise<Listener> {
	const { deployment, peers, limits, tls, logger, runtime, streamsEnd } = options;
	const { mixin, copies, store, callsEnd, onCut, http2 } = options;
	const router = createInternalRouter({
		...{ mixin, copies, store, runtime, logger, streamsEnd, callsEnd },
		isMeta: deployment.service === metaService,
		messageBytes: limits.messageBytes,
		check: (call) => {
			peers.credential.check(call);
			exchangeOf(call.values).admit({ leave: () => {} });
		},
	});
	const listener = await openListener({
		address: deployment.internalListen,
		limits,
		...(http2 && { http2 }),
		...(tls && { tls: tls.withoutClients }),
		clock: runtime.clock,
		logger,
		// Deployments are known by their credential, and may use any host name. Web pages are refused.
		handler: checkOrigin(
			{ scheme: tls === undefined ? "http" : "https", allowedOrigins: new Set() },
			createRpcHandler({
				router,
				fallback: (_request, response) =>
					sendText(response, 404, "this port serves other deployments only"),
				exchanges: new Exchanges({
					...{ clock: runtime.clock, logger, limits, streamsMayStall: true },
					...(onCut && { onCut }),
				}),
				logger,
				meter: options.meter,
			}),
		),
	});
	tls?.followWithoutClients(listener);
	return listener;
}
