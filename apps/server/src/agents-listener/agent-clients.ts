import type { HttpConnection } from "../listener/request-handler.ts";

/** The client of an agent, in place of a connection of its own: its calls come over those of agents. */
class AgentClient implements HttpConnection {
	readonly remoteAddress: string;
	readonly isMultiplexed = true;
	/** The connection of its last call. */
	agent: HttpConnection;

	constructor(remoteAddress: string, agent: HttpConnection) {
		this.remoteAddress = remoteAddress;
		this.agent = agent;
	}

	get isEncrypted(): boolean {
		return this.agent.isEncrypted;
	}

	onceClosed(listener: () => void): void {
		this.agent.onceClosed(listener);
	}

	/** The client itself can't be reached: the agent ends the calls of clients that are gone. */
	ping(done: () => void): void {
		this.agent.ping(done);
	}

	destroy(code: number): void {
		this.agent.destroy(code);
	}
}

/**
 * The clients of agents by their addresses, to which limits are applied as to connections. A client is forgotten when the
 * connection of its last call closes. Beyond the limit, those that have made no call for the longest time are forgotten:
 * their next calls count as those of new clients.
 */
export class AgentClients {
	readonly #limit: number;
	readonly #clients = new Map<string, AgentClient>();
	readonly #agents = new WeakSet<HttpConnection>();

	/** @param limit - of addresses. */
	constructor(limit: number) {
		this.#limit = limit;
	}

	/** The client with an address, whose call has come over a connection of an agent. */
	clientAt(address: string, agent: HttpConnection): HttpConnection {
		if (!this.#agents.has(agent)) {
			this.#agents.add(agent);
			agent.onceClosed(() => this.#forget(agent));
		}
		const client = this.#clients.get(address) ?? new AgentClient(address, agent);
		client.agent = agent;
		this.#clients.delete(address);
		this.#clients.set(address, client);
		if (this.#clients.size > this.#limit) {
			const [oldest] = this.#clients.keys();
			this.#clients.delete(oldest ?? address);
		}
		return client;
	}

	#forget(agent: HttpConnection): void {
		for (const [address, client] of this.#clients) {
			if (client.agent === agent) {
				this.#clients.delete(address);
			}
		}
	}
}
