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

/** What a place is for: checks find one on a server that is full, too. */
export type Purpose = "call" | "check";

/** The connections to one server. */
export interface Connections {
	/** Takes a place for a call, or for a check. */
	take(purpose?: Purpose): Place;
	/** Ends all connections and their calls. */
	close(): void;
}
