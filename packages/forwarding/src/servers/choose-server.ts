import type { Server } from "./server.ts";
import { getsCalls } from "./server-health.ts";

/** The parts of a server that decide who gets a call. */
export interface Candidate {
	readonly calls: number;
	readonly health: Pick<Server["health"], "state" | "isPreferred">;
}

/**
 * The server for a call: of those that get calls, the preferred one with the fewest open calls. Servers that the call
 * was sent to before come last. `undefined` if there is none.
 *
 * @param start - the position of the server that is preferred among equal ones.
 */
export function chooseServer<Kind extends Candidate>(
	servers: readonly Kind[],
	tried: ReadonlySet<Kind>,
	start: number,
): Kind | undefined {
	let best: Kind | undefined;
	for (let offset = 0; offset < servers.length; offset += 1) {
		const server = servers[(start + offset) % servers.length];
		if (server === undefined || !getsCalls(server.health.state)) {
			continue;
		}
		if (best === undefined || isBetter(server, best, tried)) {
			best = server;
		}
	}
	return best;
}

function isBetter<Kind extends Candidate>(a: Kind, b: Kind, tried: ReadonlySet<Kind>): boolean {
	const difference =
		Number(tried.has(a)) - Number(tried.has(b)) ||
		Number(b.health.isPreferred) - Number(a.health.isPreferred) ||
		a.calls - b.calls;
	return difference < 0;
}
