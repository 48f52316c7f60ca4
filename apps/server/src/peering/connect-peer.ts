import { Code, ConnectError } from "@connectrpc/connect";
import type { ConnectPeer } from "@plinth/peering";
import { createPlinthTransport } from "@plinth/rpc-client";
import type { Clock } from "@plinth/runtime";
import { peerPings } from "../deployment/connections.ts";

/** A longer message of a peer is refused: a resource has 1 MiB at most. In bytes. */
const maxMessageBytes = 2 * 1024 * 1024;

/** Connects to clusters of other owners. */
export function connectPeer(clock: Clock): ConnectPeer {
	return ({ address, ca }) => {
		const transport = createPlinthTransport({
			...{ baseUrl: address, clock, readMaxBytes: maxMessageBytes },
			...peerPings,
			...(ca !== "" && { nodeOptions: { ca } }),
		});
		return {
			transport,
			close: () => transport.close(new ConnectError("the connection is closed", Code.Canceled)),
		};
	};
}
