import { describe, expect, it } from "vitest";
import type { HttpConnection } from "../listener/request-handler.ts";
import { AgentClients } from "./agent-clients.ts";

/** A connection of an agent that a test closes. */
function connection(): HttpConnection & { readonly close: () => void } {
	const listeners: (() => void)[] = [];
	return {
		...{ isMultiplexed: true, isEncrypted: false, remoteAddress: "10.0.0.9" },
		onceClosed: (listener) => listeners.push(listener),
		ping: () => {},
		destroy: () => {},
		close: () => {
			for (const listener of listeners) {
				listener();
			}
		},
	};
}

describe("the clients of agents", () => {
	it("are told apart by address, whichever agent they use", () => {
		const clients = new AgentClients(10);
		const [one, other] = [connection(), connection()];
		const client = clients.clientAt("10.0.0.1", one);
		expect(client.remoteAddress).toBe("10.0.0.1");
		expect(clients.clientAt("10.0.0.1", other)).toBe(client);
		expect(clients.clientAt("10.0.0.2", other)).not.toBe(client);
	});

	it("are forgotten when the connection of their last call closes", () => {
		const clients = new AgentClients(10);
		const [one, other] = [connection(), connection()];
		const [moved, lost] = [clients.clientAt("a", one), clients.clientAt("b", one)];
		clients.clientAt("a", other);
		one.close();
		expect(clients.clientAt("a", other)).toBe(moved);
		expect(clients.clientAt("b", other)).not.toBe(lost);
	});

	it("are forgotten beyond the limit, those first that have not called for the longest time", () => {
		const clients = new AgentClients(2);
		const agent = connection();
		const [a, b] = [clients.clientAt("a", agent), clients.clientAt("b", agent)];
		clients.clientAt("a", agent);
		clients.clientAt("c", agent);
		expect(clients.clientAt("a", agent)).toBe(a);
		expect(clients.clientAt("b", agent)).not.toBe(b);
	});
});
