import { Code, ConnectError } from "@connectrpc/connect";
import type { Fields as WireFields } from "@plinth/http2";
import type { Session } from "@plinth/rpc-client/session";
import type { Fields, InboundCall } from "../inbound-call.ts";
import type { ForwardingLimits } from "../limits.ts";
import { agentsHeader, clientAddressHeader, internalHeader } from "./agent-headers.ts";
import { noFields } from "./fields.ts";
import { passesOn } from "./hop-by-hop.ts";

/** Headers that only agents send. */
const ofAgents: ReadonlySet<string> = new Set([agentsHeader, internalHeader, clientAddressHeader]);

/** What HTTP/2 counts for each header in addition to its name and its value (RFC 9113, section 6.5.2). */
const headerOverhead = 32;

/**
 * The headers of a call as they are sent to a server: as they came, without those about the client's connection, and with
 * this agent among `x-plinth-agents`. The host stays the one that the client has named, so that the server judges it. What a
 * client sends as the credential of an agent, or as its own address, is left out.
 * @throws ConnectError FailedPrecondition if the call has passed this agent before, or too many others; ResourceExhausted
 * if the headers are too large.
 */
export function requestHeaders(
	call: InboundCall,
	agent: string,
	limits: Pick<ForwardingLimits, "headerBytes" | "headers" | "agents">,
): Record<string, string> {
	const headers = Object.assign(noFields(), {
		":method": call.method,
		":path": call.target,
		...(call.authority !== undefined && { ":authority": call.authority }),
		[agentsHeader]: passedAgents(call.header(agentsHeader), agent, limits.agents),
	});
	const passes = passesOn(call.header("connection"));
	let bytes = call.target.length + headerOverhead;
	let count = 0;
	for (const [name, value] of call.headers()) {
		bytes += name.length + value.length + headerOverhead;
		count += 1;
		if (ofAgents.has(name) || name === "host" || !passes(name)) {
			continue;
		}
		if (name === "te" ? /(?:^|,)\s*trailers\s*(?:,|$)/i.test(value) : !isExpectation(name, value)) {
			headers[name] = name === "te" ? "trailers" : value;
		}
	}
	if (bytes > limits.headerBytes || count > limits.headers) {
		throw new ConnectError(
			`the request has ${count} headers of ${bytes} bytes with its path: the agent forwards at most ${limits.headers} headers of ${limits.headerBytes} bytes`,
			Code.ResourceExhausted,
		);
	}
	return headers;
}

/**
 * The headers by which servers know this agent, and its client if it has an address: the agent's own calls have none.
 *
 * @param credential - of the agent, as it is now; empty if servers require none.
 */
export function credentialHeaders(
	{ clientAddress }: Pick<InboundCall, "clientAddress">,
	credential: string,
): Fields {
	return credential === ""
		? {}
		: {
				[internalHeader]: credential,
				...(clientAddress !== "" && { [clientAddressHeader]: clientAddress }),
			};
}

/** The head of a request as it is sent on a session: pseudo-headers first. */
export function requestFields(
	headers: Fields,
	{ scheme, host }: Pick<Session, "scheme" | "host">,
): WireFields {
	const {
		":method": method = "GET",
		":path": path = "/",
		":authority": authority = host,
		...rest
	} = headers;
	const pseudo = [":method", method, ":scheme", scheme, ":authority", authority, ":path", path];
	return [...pseudo, ...Object.entries(rest).flat()];
}

/** Whether the agent has already met it: its listener has told the client to send the body. */
function isExpectation(name: string, value: string): boolean {
	return name === "expect" && value.toLowerCase() === "100-continue";
}

function passedAgents(value: string | undefined, agent: string, limit: number): string {
	if (value === undefined) {
		return agent;
	}
	const passed = value.split(",").map((each) => each.trim());
	if (passed.includes(agent)) {
		throw new ConnectError(
			"the call was forwarded in a loop: it has passed this agent before. One of the addresses in --servers leads back to this agent: name the servers there",
			Code.FailedPrecondition,
		);
	}
	if (passed.length >= limit) {
		throw new ConnectError(
			`the call has passed ${passed.length} agents, and at most ${limit} may forward it: let agents name the servers in --servers`,
			Code.FailedPrecondition,
		);
	}
	return `${value}, ${agent}`;
}
