import type { Endpoint } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { hashOf } from "./resource-key.ts";

/** Where a server of a deployment is reached. */
export interface EndpointAddresses {
	/** By other deployments. That of a load balancer is the announced address of several servers. */
	readonly announced: string;
	/** By the other servers of its deployment: no load balancer. The announced one if none is known. */
	readonly direct: string;
}

/** The addresses of the servers of a deployment, by the names of their records. */
export type Endpoints = ReadonlyMap<string, EndpointAddresses>;

/** The addresses in the record of a server. One that is older than direct addresses has only the announced one. */
export function addressesIn({ address, directAddress }: Endpoint): EndpointAddresses {
	return { announced: address, direct: directAddress || address };
}

/**
 * The name of the record of a server, and of its lease. It is that of both addresses: servers with one announced address
 * have a record each, and so have servers that listen at the same address of different machines behind proxies of their own.
 * What the record of a name contains never changes.
 */
export function endpointName({ announced, direct }: EndpointAddresses): string {
	const addresses = direct === announced ? announced : `${announced} ${direct}`;
	return `endpoint-${hashOf(addresses).slice(0, 40)}`;
}

/** What is announced to other deployments: each address once. */
export function announcedAddresses(endpoints: Endpoints): readonly string[] {
	return [...new Set([...endpoints.values()].map(({ announced }) => announced))];
}

/**
 * The other servers of a deployment, as one of them reaches them: at the announced address if that leads to one server
 * alone, otherwise at the direct one. A server that announces an address of its own need not be reachable at another one.
 */
export function siblingsOf(
	own: EndpointAddresses,
	endpoints: Endpoints,
): readonly (EndpointAddresses & { readonly address: string })[] {
	if (isPlanted("call the servers at one address as one")) {
		const others = announcedAddresses(endpoints).filter((address) => address !== own.announced);
		return others.map((address) => ({ announced: address, direct: address, address }));
	}
	const ownName = endpointName(own);
	const others = [...endpoints].flatMap(([name, each]) => (name === ownName ? [] : each));
	const counts = new Map([[own.announced, 1]]);
	for (const { announced } of others) {
		counts.set(announced, (counts.get(announced) ?? 0) + 1);
	}
	return others.map(({ announced, direct }) => ({
		...{ announced, direct },
		address: counts.get(announced) === 1 ? announced : direct,
	}));
}
