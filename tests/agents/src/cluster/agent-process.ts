import type { ForwardedMethod, Forwarder } from "@plinth/forwarding";
import { createForwarderOn } from "@plinth/forwarding/testing";
import { silentLogger } from "@plinth/runtime";
import { forwardedMethod, knownMethod } from "@plinth/server/testing";
import { AgentConnections } from "../network/agent-connections.ts";
import type { Exchange } from "../network/exchange.ts";
import { InboundExchange } from "../network/inbound-exchange.ts";
import type { Host, Network } from "../network/network.ts";

/** What agents have done, in all. */
export interface AgentCounts {
	/** Watches that went on at another server. */
	moved: number;
	/** Calls that were sent again. */
	retried: number;
	/** Conditional writes among them, which a server may have executed before. */
	repeatedWrites: number;
}

/** Options of an agent. */
export interface AgentOptions {
	readonly name: string;
	readonly network: Network;
	readonly servers: readonly string[];
	readonly counts: AgentCounts;
	/** What it knows of a method: changed by a planted fault. */
	readonly changeMethod: (path: string, method: ForwardedMethod) => ForwardedMethod;
}

/** An agent: the forwarder that `plinth-server agent` consists of, between simulated connections. */
export class AgentProcess implements Host {
	readonly name: string;
	/** The newest version that any of its clients has received. */
	shown = 0;
	#isRunning = true;
	readonly #network: Network;
	readonly #forwarder: Forwarder;

	/** Starts it. */
	constructor({ name, network, servers, counts, changeMethod }: AgentOptions) {
		this.name = name;
		this.#network = network;
		this.#forwarder = createForwarderOn(
			{
				servers: servers.map(addressOf),
				methodOf: (path) => {
					const method = knownMethod(path);
					return method && changeMethod(path, forwardedMethod(method));
				},
				observer: {
					callEnded: () => {},
					callRetried: (reason) => {
						counts.retried += 1;
						counts.repeatedWrites += reason === "conditional_write" ? 1 : 0;
					},
					watchMoved: () => {
						counts.moved += 1;
					},
					serverEjected: () => {},
				},
				logger: silentLogger,
				runtime: network.faults.runtime,
			},
			({ address }, onGoaway) => new AgentConnections(network, new URL(address).hostname, onGoaway),
		);
		network.add(name, this);
	}

	/** Whether calls to its name still reach it: another agent knows nothing of what this one has shown. */
	get isRunning(): boolean {
		return this.#isRunning;
	}

	handle(exchange: Exchange): void {
		this.#forwarder.forward(new InboundExchange(exchange));
	}

	/** Replaces the servers that it forwards calls to. */
	setServers(servers: readonly string[]): void {
		this.#forwarder.setServers(servers.map((server) => ({ address: addressOf(server) })));
	}

	/** A client has received this version through it. */
	hasShown(version: string): void {
		this.shown = Math.max(this.shown, Number(version));
	}

	/** Stops it abruptly. */
	crash(): void {
		this.#isRunning = false;
		this.#network.remove(this.name);
		this.#forwarder.close();
	}
}

function addressOf(server: string): string {
	return `http://${server}`;
}
