import type { Transport } from "@connectrpc/connect";

/** A connection to a peer. */
export interface PeerConnection {
	readonly transport: Transport;
	/** Ends all calls. */
	close(): void;
}

/** Opens a connection to a peer, by its first call. */
export type ConnectPeer = (options: {
	/** A URL such as `https://plinth.example.com:7575`. */
	readonly address: string;
	/** The certificates that it is checked against, in PEM; empty for those that the system trusts. */
	readonly ca: string;
}) => PeerConnection;
