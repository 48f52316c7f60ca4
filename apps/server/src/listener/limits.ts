/** What a listener grants its clients at most. */
export interface ListenerLimits {
	/** Open connections; one more is closed at once. */
	readonly connections: number;
	/** A connection that has not sent complete headers this long after it was opened is closed. */
	readonly headersMs: number;
	/** A connection without a call for this long is closed. */
	readonly idleMs: number;
	/** A request whose body has not arrived this long after its start is ended; streams of clients aside. */
	readonly requestMs: number;
	/** A stream that the client can still write to is ended when it had no message for this long (HTTP/2). */
	readonly streamIdleMs: number;
	/** A response whose client takes nothing of what waits for it is ended after this long. */
	readonly writeStallMs: number;
	/** Bytes of several responses that may wait for the client of a connection. */
	readonly pendingBytesPerConnection: number;
	/** Bytes of responses that may wait for all clients. */
	readonly pendingBytes: number;
	/** Bytes of messages that were received and not decoded yet, of all clients; four messages at least. */
	readonly incompleteBytes: number;
	/** Watches of the health service on one connection. */
	readonly healthWatchesPerConnection: number;
	/** Watches of the health service in all. */
	readonly healthWatches: number;
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
	/** The fields of one message of a request; methods may have a limit of their own. */
	readonly messageFields: number;
}

/** What holds where nothing else is said. */
export const defaultListenerLimits: ListenerLimits = {
	connections: 10_000,
	headersMs: 10_000,
	idleMs: 5 * 60_000,
	requestMs: 60_000,
	streamIdleMs: 5 * 60_000,
	writeStallMs: 30_000,
	pendingBytesPerConnection: 64 * 1024 ** 2,
	pendingBytes: 256 * 1024 ** 2,
	incompleteBytes: 256 * 1024 ** 2,
	healthWatchesPerConnection: 64,
	healthWatches: 1_000,
	streamsPerConnection: 1_024,
	connectionMemoryMiB: 64,
	lingerMs: 250,
	messageBytes: 4 * 1024 * 1024,
	messageFields: 250_000,
};
