import type { Session } from "@plinth/rpc-client/session";

/** A place for one call on a connection. */
export interface Place {
	/** The session, or a promise that rejects if the server can't be reached. */
	session(): Session | Promise<Session>;
	/** The call has ended. Must be called once. */
	leave(): void;
}

/** The connections to one server. */
export interface Connections {
	/** Takes a place for a call. */
	take(): Place;
	/** Ends all connections and their calls. */
	close(): void;
}
