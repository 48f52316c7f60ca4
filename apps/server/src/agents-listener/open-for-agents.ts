import { type Listener, type ListenerOptions, openListener } from "../listener/listener.ts";
import type { FollowedTls } from "../listener/tls/followed-tls.ts";
import type { SharedSecrets } from "../security/shared-secrets.ts";
import { AgentClients } from "./agent-clients.ts";
import type { AgentsOptions } from "./agents-options.ts";
import { type CheckAgentOptions, checkAgent } from "./check-agent.ts";
import { streamErrorsOfAgents } from "./stream-errors.ts";

/** So many addresses of clients are told apart. */
const clientLimit = 10_000;

/** Options of `openForAgents`. */
export interface ForAgentsOptions
	extends Omit<ListenerOptions, "address" | "tls" | "streamErrors">,
		Pick<CheckAgentOptions, "onRefused"> {
	readonly agents: Pick<AgentsOptions, "listen">;
	readonly secrets: SharedSecrets;
	readonly tls: FollowedTls | undefined;
}

/** Opens the port for agents, which serves what the public one does. @throws ListenError. */
export async function openForAgents(options: ForAgentsOptions): Promise<Listener> {
	const { agents, secrets, tls, onRefused, handler, ...others } = options;
	const clients = new AgentClients(clientLimit);
	const listener = await openListener({
		...others,
		address: agents.listen,
		streamErrors: streamErrorsOfAgents,
		handler: checkAgent({ secrets, clients, onRefused }, handler),
		// Agents are known by their credential.
		...(tls && { tls: tls.withoutClients }),
	});
	tls?.followWithoutClients(listener);
	return listener;
}
