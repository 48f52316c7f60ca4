/** The limits of a forwarder. */
export interface ForwardingLimits {
	/** Calls of clients that are forwarded at the same time, streams included; more are refused. */
	readonly calls: number;
	/** The size of one request message; of the whole body, if the protocol does not divide it into messages. In bytes. */
	readonly requestBytes: number;
	/** The size of a request's headers and path, in bytes, with 32 more for each header. */
	readonly headerBytes: number;
	/** The number of a request's headers. */
	readonly headers: number;
	/** The beginning of a request that is kept so that it can be sent to another server, in bytes. */
	readonly keptBytes: number;
	/**
	 * The same for all calls together, and with it the messages of watches that are held. As much again is kept for the requests
	 * of watches: those that find no room are not continued at another server.
	 */
	readonly keptBytesInTotal: number;
	/** The agents that a call may have passed. */
	readonly agents: number;
	/** How often a call is sent, at most. A watch that is continued at another server is not counted. */
	readonly attempts: number;
	/** The lists that are read in pages, whose servers are remembered. */
	readonly lists: number;
	/** How long a watch that was cut off waits for a server that continues it, in milliseconds. */
	readonly watchMoveMs: number;
	/** The size of the largest request of a watch that is continued, in bytes. */
	readonly watchRequestBytes: number;
	/**
	 * The size of the largest message of a watch that is held until it is complete, in bytes. While a larger one is passed on,
	 * and until the next version, the watch can't be continued.
	 */
	readonly watchMessageBytes: number;
}

/** The default limits of a forwarder. */
export const defaultForwardingLimits: ForwardingLimits = {
	calls: 10_000,
	requestBytes: 16 * 1024 ** 2,
	// What servers accept is 16 KiB. Larger headers must not reach them: they would end the session of many callers.
	headerBytes: 15 * 1024,
	headers: 100,
	keptBytes: 64 * 1024,
	keptBytesInTotal: 64 * 1024 ** 2,
	agents: 4,
	attempts: 3,
	// Each server holds 1,000 snapshots, and forgets the oldest ones.
	lists: 10_000,
	watchMoveMs: 30_000,
	// The set of 100 watches has half of it.
	watchRequestBytes: 32 * 1024,
	// A resource has 1 MiB, and more in JSON.
	watchMessageBytes: 4 * 1024 ** 2,
};
