import type { Forwarder, ForwardingObserver } from "@plinth/forwarding";
import type { Exchanges } from "../listener/exchanges.ts";
import type { Listener } from "../listener/listener.ts";
import type { Metrics } from "../operations/metrics.ts";
import type { Discovery } from "./discovery/discovery.ts";

/** The instruments of an agent. */
export interface AgentMetrics {
	readonly observer: ForwardingObserver;
	/** Counts an exchange that the agent ended. */
	readonly cut: (reason: string) => void;
	observe(forwarder: Forwarder, exchanges: Exchanges, discovery: Discovery | undefined): void;
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
		observeListener: (listener) => {
			gauge("plinth.connections", "Open connections").addCallback((result) =>
				result.observe(listener.connections),
			);
		},
	};
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
