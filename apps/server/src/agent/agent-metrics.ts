import type { Forwarder, ForwardingObserver } from "@plinth/forwarding";
import type { Exchanges } from "../listener/exchanges.ts";
import type { Listener } from "../listener/listener.ts";
import type { Metrics } from "../operations/metrics.ts";
import type { AgentCache } from "./cache/agent-cache.ts";
import type { CacheObserver } from "./cache/cache-observer.ts";
import type { Discovery } from "./discovery/discovery.ts";

/** The instruments of an agent. */
export interface AgentMetrics {
	readonly observer: ForwardingObserver;
	/** Counts an exchange that the agent ended. */
	readonly cut: (reason: string) => void;
	observe(forwarder: Forwarder, exchanges: Exchanges, discovery: Discovery | undefined): void;
	/** Counts calls for cached types. */
	readonly cacheObserver: CacheObserver;
	observeCache(cache: Pick<AgentCache, "types" | "tokens" | "watches">): void;
	observeListener(listener: Pick<Listener, "connections">): void;
}

/** Creates the instruments of an agent. Their values name servers, but neither callers nor resources. */
export function createAgentMetrics({ meter }: Pick<Metrics, "meter">): AgentMetrics {
	const counter = (name: string, description: string) => meter.createCounter(name, { description });
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(name, { description });
	const calls = counter("plinth.agent.calls", "Calls that have ended, by their outcome");
	const retries = counter("plinth.agent.retries", "Calls that were sent once more, by the reason");
	const moves = counter(
		"plinth.agent.watch.moves",
		"How often a watch that was cut off was requested from a server again",
	);
	const ejections = counter("plinth.agent.ejections", "How often a server got no more calls");
	const cuts = counter("plinth.agent.cuts", "Calls that the agent ended early, by the reason");
	const cached = counter(
		"plinth.agent.cache.calls",
		"Calls for cached types, by whether the cache has served them",
	);
	return {
		observer: {
			callEnded: (outcome) => calls.add(1, { outcome }),
			callRetried: (reason) => retries.add(1, { reason }),
			watchMoved: () => moves.add(1),
			serverEjected: (server) => ejections.add(1, { server }),
		},
		cut: (reason) => cuts.add(1, { reason }),
		observe: (forwarder, exchanges, discovery) => {
			if (discovery !== undefined) {
				observeDiscovery(meter, discovery);
			}
			gauge("plinth.agent.calls.open", "Calls that have not ended, streams included").addCallback(
				(result) => {
					// A server that was removed and added again is listed twice.
					const open = new Map<string, number>();
					for (const { address, calls } of forwarder.status()) {
						open.set(address, (open.get(address) ?? 0) + calls);
					}
					for (const [server, calls] of open) {
						result.observe(calls, { server });
					}
				},
			);
			gauge("plinth.agent.servers.healthy", "Whether a server gets calls").addCallback((result) => {
				for (const { address, state, isRemoved } of forwarder.status()) {
					if (!isRemoved) {
						result.observe(state === "healthy" ? 1 : 0, { server: address });
					}
				}
			});
			gauge(
				"plinth.agent.pending.bytes",
				"Response bytes that were read from servers and not by clients",
			).addCallback((result) => result.observe(exchanges.pendingBytes));
		},
		cacheObserver: { called: (outcome) => cached.add(1, { outcome }) },
		observeCache: (cache) => observeCache(meter, cache),
		observeListener: (listener) => {
			gauge("plinth.connections", "Open connections").addCallback((result) =>
				result.observe(listener.connections),
			);
		},
	};
}

function observeCache(
	meter: Metrics["meter"],
	cache: Pick<AgentCache, "types" | "tokens" | "watches">,
): void {
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(name, { description });
	gauge("plinth.agent.cache.age.seconds", "For how long a cache may lack changes").addCallback(
		(result) => {
			for (const { key, ageMs } of cache.types) {
				if (Number.isFinite(ageMs)) {
					result.observe(ageMs / 1_000, { type: key });
				}
			}
		},
	);
	gauge("plinth.agent.cache.used", "Whether a cache serves calls").addCallback((result) => {
		for (const { key, service } of cache.types) {
			result.observe(service === undefined ? 0 : 1, { type: key });
		}
	});
	gauge("plinth.agent.cache.watches", "Watches that caches serve").addCallback((result) =>
		result.observe(cache.watches),
	);
	gauge("plinth.agent.cache.tokens", "Tokens whose rights are followed").addCallback((result) =>
		result.observe(cache.tokens),
	);
}

function observeDiscovery(meter: Metrics["meter"], discovery: Discovery): void {
	meter
		.createObservableGauge("plinth.agent.discovery.servers", {
			description: "The servers that were found last",
		})
		.addCallback((result) => result.observe(discovery.status().servers));
	meter
		.createObservableGauge("plinth.agent.discovery.found.seconds", {
			description: "When servers were found last, in seconds since the epoch",
		})
		.addCallback((result) => {
			const { foundAtMs } = discovery.status();
			if (foundAtMs !== undefined) {
				result.observe(foundAtMs / 1_000);
			}
		});
	meter
		.createObservableCounter("plinth.agent.discovery.failures", {
			description: "Attempts that have found no servers",
		})
		.addCallback((result) => result.observe(discovery.status().failures));
}
