import { ConnectError, createClient } from "@connectrpc/connect";
import type { Forwarder } from "@plinth/forwarding";
import { ResourceService } from "@plinth/proto";
import { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { gvkKey } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { UsageError } from "../../configuration/usage-error.ts";
import type { AgentConfiguration } from "../agent-configuration.ts";
import type { AgentMetrics } from "../agent-metrics.ts";
import { type OwnCallsOptions, openOwnCalls } from "../own-calls.ts";
import { AgentCache } from "./agent-cache.ts";

/** Options of `startCaches`. */
export interface StartCachesOptions extends Omit<OwnCallsOptions, "tokenFile" | "runtime"> {
	readonly configuration: Pick<AgentConfiguration, "cache" | "cacheTokenFile">;
	readonly forwarder: Pick<Forwarder, "position">;
	readonly instruments: Pick<AgentMetrics, "cacheObserver" | "observeCache">;
	readonly runtime: Runtime;
}

/** The caches of an agent, with the connection by which they are filled. */
export interface StartedCaches {
	readonly cache: AgentCache;
	/**
	 * Waits until servers have described the types, or until that takes too long.
	 *
	 * @throws UsageError if they say that one is not registered.
	 */
	checkTypes(): Promise<void>;
	/** Reads the token file again. */
	reload(): Promise<void>;
	close(): Promise<void>;
}

/**
 * Starts the caches of an agent, if it has any. Servers that are not ready are not waited for: until caches are primed, calls
 * are forwarded.
 *
 * @throws FileError if the token file can't be read.
 */
export async function startCaches(options: StartCachesOptions): Promise<StartedCaches | undefined> {
	const { configuration, forwarder, instruments, runtime, logger } = options;
	const types = new Map((configuration.cache ?? []).map((type) => [gvkKey(type), type]));
	if (types.size === 0) {
		return undefined;
	}
	const calls = await openOwnCalls({ ...options, tokenFile: configuration.cacheTokenFile });
	const cache = new AgentCache({
		types: [...types.values()],
		resources: createClient(ResourceService, calls.transport),
		describing: createClient(AgentCacheService, calls.transport),
		rights: createClient(AgentCacheService, calls.transportWithoutToken),
		observer: instruments.cacheObserver,
		...{ position: forwarder.position, runtime, logger },
	});
	instruments.observeCache(cache);
	return {
		cache,
		async checkTypes() {
			try {
				await cache.checkTypes();
			} catch (failure) {
				throw new UsageError(`--cache: ${ConnectError.from(failure).rawMessage} at the servers`);
			}
		},
		reload: () => calls.reload(),
		async close() {
			cache.close();
			await calls.close();
		},
	};
}
