import {
	type ConnectRouter,
	type ConnectRouterOptions,
	createConnectRouter,
} from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { sleep, systemClock } from "@plinth/runtime";

/**
 * A router whose Read returns the requested name, whose Write waits for `release`, and
 * whose WatchList sends one EndOfSnapshot and then nothing until its signal aborts.
 */
export function echoRouter(
	options: ConnectRouterOptions,
	release: Promise<void> = Promise.resolve(),
): ConnectRouter {
	return createConnectRouter(options).service(ResourceService, {
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
