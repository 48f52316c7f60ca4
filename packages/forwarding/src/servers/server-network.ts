import type { Session } from "@plinth/rpc-client/session";

/** A place for one call on a connection. */
export interface Place {
	/**
	 * The session, or a promise that rejects with a ConnectError: ResourceExhausted if the server accepts no more calls now,
	 * Unavailable if it can't be reached.
	 */
	session(): Session | Promise<Session>;
	/** The call has ended. Must be called once. */
	leave(): void;
}

/**
 * What a place is for. The agent's own calls have connections of their own, and checks find a place on a server that is full, too:
 * neither waits for calls of clients.
 */
export type Purpose = "call" | "own" | "check";

/** Whose call a place is for: that of a client, or of the agent itself. */
export type CallPurpose = Exclude<Purpose, "check">;

/** The connections to one server. */
export interface Connections {
	/** Takes a place: for a call of a client by default. */
	take(purpose?: Purpose): Place;
	/** Ends all connections and their calls. */
	close(): void;
}
