/** What a listener grants its clients at most. */
export interface ListenerLimits {
	/** Open connections; one more is closed at once. */
	readonly connections: number;
	/** A connection that has not sent complete headers this long after it was opened is closed. */
	readonly headersMs: number;
	/** A connection without a call for this long is closed. */
	readonly idleMs: number;
	/** A request whose body has not arrived this long after its start is ended (HTTP/1.1). */
	readonly requestMs: number;
	/** Concurrent calls on one HTTP/2 connection. */
	readonly streamsPerConnection: number;
	/** What one HTTP/2 connection may make the server hold, in MiB. */
	readonly connectionMemoryMiB: number;
	/**
	 * For how long a listener that closes still answers what comes on connections that are open: a client
	 * that has just sent a call is told so, and not reset.
	 */
	readonly lingerMs: number;
	/** The size of one message of a request, after decompression. */
	readonly messageBytes: number;
}

/** What holds where nothing else is said. */
export const defaultListenerLimits: ListenerLimits = {
	connections: 10_000,
	headersMs: 10_000,
	idleMs: 5 * 60_000,
	requestMs: 60_000,
	streamsPerConnection: 1_024,
	connectionMemoryMiB: 64,
	lingerMs: 250,
	messageBytes: 4 * 1024 * 1024,
};
