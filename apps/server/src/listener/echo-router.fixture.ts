import { ResourceService } from "@plinth/proto";
import { createRpcRouter, type RpcRouter, type RpcRouterOptions } from "@plinth/rpc-server";
import { sleep, systemClock } from "@plinth/runtime";

/**
 * A router whose Read returns the requested name, whose Write waits for `release`, and
 * whose WatchList sends one EndOfSnapshot and then nothing until its signal aborts.
 */
export function echoRouter(
	options: Omit<RpcRouterOptions, "clock">,
	release: Promise<void> = Promise.resolve(),
): RpcRouter {
	return createRpcRouter({ ...options, clock: systemClock }).service(ResourceService, {
		read: (request) => ({ resource: { id: { name: request.id?.name ?? "" } } }),
		write: async (request) => {
			await release;
			return request.resource === undefined ? {} : { resource: request.resource };
		},
		async *watchList(_request, { signal }) {
			yield { event: { case: "endOfSnapshot", value: {} }, version: "1" };
			await sleep(systemClock, Number.POSITIVE_INFINITY, signal);
		},
	});
}
