import { metaService } from "@plinth/db-constraint";
import { endStreams } from "../listener/end-streams.ts";
import type { FollowedTls } from "../listener/followed-tls.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { reportFaults } from "../listener/report-faults.ts";
import { answerText } from "../listener/request-handler.ts";
import { createRpcHandler } from "../listener/rpc-handler.ts";
import type { DeploymentOptions } from "./deployment-options.ts";
import { createInternalRouter, type InternalRouterOptions } from "./internal-router.ts";
import type { Others } from "./others.ts";

/** What the internal listener is made of. */
export interface InternalOptions
	extends Pick<InternalRouterOptions, "mixin" | "store" | "runtime" | "logger" | "callsEnd"> {
	readonly deployment: DeploymentOptions;
	readonly others: Pick<Others, "credential">;
	readonly limits: ListenerLimits;
	readonly tls: FollowedTls | undefined;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
}

/** Listens for the other deployments. @throws ListenError. */
export async function openInternal(options: InternalOptions): Promise<Listener> {
	const { deployment, others, limits, tls, logger, runtime, streamsEnd } = options;
	const { mixin, store, callsEnd } = options;
	const router = createInternalRouter({
		...{ mixin, store, runtime, logger, callsEnd },
		isMeta: deployment.service === metaService,
		messageBytes: limits.messageBytes,
		check: (call) => others.credential.check(call),
		interceptors: [endStreams(streamsEnd), reportFaults(logger)],
	});
	const listener = await openListener({
		address: deployment.internalListen,
		limits,
		...(tls && { tls: tls.withoutClients }),
		clock: runtime.clock,
		logger,
		handler: createRpcHandler(
			router,
			(_request, response) => answerText(response, 404, "only deployments call here"),
			logger,
		),
	});
	tls?.followWithoutClients(listener);
	return listener;
}
