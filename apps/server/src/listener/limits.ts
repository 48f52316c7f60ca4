/** The limits of a listener. */
export interface ListenerLimits {
	/** Open connections; further ones are closed immediately. */
	readonly connections: number;
	/** A connection that has not sent complete headers this long after it was opened is closed. */
	readonly headersMs: number;
	/** A connection that has had no call for this long is closed. */
	readonly idleMs: number;
	/** A request whose body has not arrived this long after its start is ended, unless it is a client stream. */
	readonly requestMs: number;
	/** A stream that the client can still write to is ended when it has had no message for this long (HTTP/2). */
	readonly streamIdleMs: number;
	/** A response of which the client has read nothing for this long is ended. */
	readonly writeStallMs: number;
	/** Unread bytes of several responses on one connection. */
	readonly pendingBytesPerConnection: number;
	/** Unread response bytes in total. */
	readonly pendingBytes: number;
	/** Bytes of messages that were received and are not decoded yet, in total; at least four messages. */
	readonly incompleteBytes: number;
	/** Watches of the health service on one connection. */
	readonly healthWatchesPerConnection: number;
	/** Watches of the health service in total. */
	readonly healthWatches: number;
	/** Concurrent calls on one HTTP/2 connection. */
	readonly streamsPerConnection: number;
	/** The memory that Node may use for one HTTP/2 connection, in MiB. */
	readonly connectionMemoryMiB: number;
	/**
	 * How long a closing listener still responds on open connections, so that a client that has just sent a call gets
	 * an error instead of a reset.
	 */
	readonly lingerMs: number;
	/** The size of one message of a request, after decompression. */
	readonly messageBytes: number;
	/** The number of fields of one request message; methods may have their own limit. */
	readonly messageFields: number;
}

/** The default limits of a listener. */
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
