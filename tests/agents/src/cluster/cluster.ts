import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { withFault } from "@plinth/peering/testing";
import { ResourceService } from "@plinth/proto";
import type { StreamResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { StorageUnavailable } from "@plinth/storage";
import { History } from "../checks/history.ts";
import { clientTransport, type Protocol } from "../network/client-transport.ts";
import type { Network } from "../network/network.ts";
import { isOfPeerings, type PlantedFault } from "../planted-faults.ts";
import { type AgentCounts, AgentProcess } from "./agent-process.ts";
import { ServerProcess } from "./server-process.ts";
import { SharedStorage } from "./shared-storage.ts";

/** Options of a cluster. */
export interface ClusterOptions {
	readonly name: string;
	readonly network: Network;
	readonly servers: number;
	readonly agents: number;
	readonly counts: AgentCounts;
	readonly fault: PlantedFault | undefined;
	/** A server of another cluster that a connection can lead to. */
	readonly serverOf: (cluster: string) => string;
	readonly onExported: (message: StreamResponse) => void;
	readonly onSentToPeer: (bytes: Uint8Array) => void;
	readonly onFault: (failure: unknown) => void;
}

/** A client of an agent. */
export interface AgentClient {
	readonly agent: AgentProcess;
	readonly resources: Client<typeof ResourceService>;
}

/** A cluster: servers over one storage, and agents in front of them. */
export class Cluster {
	readonly name: string;
	readonly history = new History();
	readonly storage: SharedStorage;
	readonly #options: ClusterOptions;
	readonly #names: readonly string[];
	readonly #running = new Map<string, ServerProcess>();
	/** Servers that stop, and whose names are not free yet. */
	readonly #stopping = new Set<string>();
	#agents: readonly AgentProcess[] = [];
	readonly #clients = new Map<string, Transport>();

	constructor(options: ClusterOptions) {
		const { name, network, servers } = options;
		this.name = name;
		this.#options = options;
		this.storage = new SharedStorage(network.faults.runtime, this.history);
		this.#names = Array.from({ length: servers }, (_, index) => `${name}-${index + 1}`);
	}

	/** The servers that run and don't stop. */
	get running(): readonly ServerProcess[] {
		return [...this.#running.values()];
	}

	/** Starts all servers and agents, and stores what each cluster has. */
	async begin(): Promise<void> {
		this.startAll();
		const { agents } = this.#options;
		this.#agents = Array.from({ length: agents }, (_, index) => this.#agent(index));
		const [first] = this.running;
		if (first !== undefined) {
			await ensureDefaultTenancy(first.backend, this.#options.network.faults.runtime);
		}
	}

	/** A client at one of the agents. */
	clientOf(index: number, protocol: Protocol): AgentClient {
		const agent = this.#agents[index % this.#agents.length];
		if (agent === undefined) {
			throw new Error(`${this.name} has no agent`);
		}
		return { agent, resources: createClient(ResourceService, this.#transport(agent, protocol)) };
	}

	/** A client of its peerings, at an agent. */
	get peerings(): Client<typeof PeeringService> {
		const { agent } = this.clientOf(0, "grpc");
		return createClient(PeeringService, this.#transport(agent, "grpc"));
	}

	/** Where a connection to the cluster leads: to one of the servers that run. */
	get address(): string {
		const server = this.#options.network.faults.pick(this.running);
		if (server === undefined) {
			throw new ConnectError(`${this.name} has no running server`, Code.Unavailable);
		}
		return server.name;
	}

	/** Starts one of the servers that don't run. */
	startOne(): void {
		const [name] = this.#names.filter(
			(each) => !this.#running.has(each) && !this.#stopping.has(each),
		);
		if (name !== undefined) {
			this.#start(name);
		}
	}

	startAll(): void {
		for (let count = 0; count < this.#names.length; count += 1) {
			this.startOne();
		}
	}

	crash(server: ServerProcess): void {
		this.#running.delete(server.name);
		server.crash();
	}

	async stop(server: ServerProcess): Promise<void> {
		this.#running.delete(server.name);
		this.#stopping.add(server.name);
		await server.stop();
		this.#stopping.delete(server.name);
	}

	/** Kills all servers, and restores the backup if there is one. Returns whether there is. */
	restore(): boolean {
		for (const server of this.running) {
			this.crash(server);
		}
		return this.storage.restore();
	}

	/** Replaces the servers that an agent knows. */
	setServers(index: number, isKnown: (server: string) => boolean): void {
		const known = this.#names.filter(isKnown);
		this.#agents[index % this.#agents.length]?.setServers(
			known.length === 0 ? this.#names.slice(0, 1) : known,
		);
	}

	/** All agents know all servers. */
	setAllServers(): void {
		for (const index of this.#agents.keys()) {
			this.setServers(index, () => true);
		}
	}

	/** An agent is killed, and another one takes its place. */
	replaceAgent(index: number): void {
		const at = index % this.#agents.length;
		this.#agents[at]?.crash();
		this.#agents = this.#agents.map((agent, each) => (each === at ? this.#agent(at) : agent));
	}

	/** Ends all processes. */
	async end(): Promise<void> {
		for (const agent of this.#agents) {
			agent.crash();
		}
		await Promise.all(this.running.map((server) => this.stop(server)));
	}

	#agent(index: number): AgentProcess {
		const { network, counts, fault } = this.#options;
		return new AgentProcess({
			name: `${this.name}-agent-${index + 1}`,
			...{ network, counts, servers: this.#names },
			changeMethod: (path, method) =>
				fault === "writes are sent again" && path.endsWith("/Write")
					? { ...method, isRepeatable: true }
					: method,
		});
	}

	#transport(agent: AgentProcess, protocol: Protocol): Transport {
		const { network } = this.#options;
		const key = `${agent.name} ${protocol}`;
		const known = this.#clients.get(key);
		if (known !== undefined) {
			return known;
		}
		const transport = clientTransport({ network, to: () => agent.name, protocol });
		this.#clients.set(key, transport);
		return transport;
	}

	#start(name: string): void {
		const { network, fault, serverOf, onExported, onSentToPeer, onFault } = this.#options;
		const { faults } = network;
		const mayFail = () => {
			if (faults.strikes(0.03)) {
				throw new StorageUnavailable("the storage can't be reached");
			}
		};
		const server = new ServerProcess({
			...{ name, network, serverOf, onExported, onSentToPeer, onFault },
			...{ cluster: this.name, shared: this.storage },
			peeringStorage: (backend) =>
				isOfPeerings(fault) ? withFault(backend, fault, mayFail) : backend,
		});
		this.#running.set(name, server);
	}
}
