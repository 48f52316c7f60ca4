import { Code } from "@connectrpc/connect";
import { clientAddressHeader, internalHeader } from "@plinth/forwarding/headers";
import { refuseRequest } from "../listener/refuse-request.ts";
import type { RequestHandler } from "../listener/request-handler.ts";
import type { SharedSecrets } from "../security/shared-secrets.ts";
import type { AgentClients } from "./agent-clients.ts";

/** Options of `checkAgent`. */
export interface CheckAgentOptions {
	readonly secrets: Pick<SharedSecrets, "accepts">;
	readonly clients: AgentClients;
	/** Called with each request that is refused, before its response is sent. */
	readonly onRefused: RequestHandler;
}

/** Longer addresses are cut: those of IPv6 have up to 45 characters, and more with a zone. */
const addressLength = 64;

/**
 * Lets requests of agents pass that carry a credential. It grants no rights: what follows checks the token of the client as on
 * any other port. It has two effects: limits on connections are applied to the address that the agent names as its client's,
 * and AgentCacheService is served.
 */
export function checkAgent(
	{ secrets, clients, onRefused }: CheckAgentOptions,
	next: RequestHandler,
): RequestHandler {
	return (request, response) => {
		if (!secrets.accepts(request.header(internalHeader) ?? "")) {
			onRefused(request, response);
			refuseRequest(request, response, {
				code: Code.Unauthenticated,
				message:
					"this port is for agents: start them with --servers-credential-file, whose first line must be in --agents-credential-file of the server",
			});
			return;
		}
		request.isOfAgent = true;
		const address = request.header(clientAddressHeader)?.slice(0, addressLength);
		if (address !== undefined && request.connection.isMultiplexed) {
			request.client = clients.clientAt(address, request.connection);
		}
		next(request, response);
	};
}
