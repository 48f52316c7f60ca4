/** The version of the protocol between clusters that this package speaks. */
export const protocolVersion = 1;

/** The limits of peerings. Times are in milliseconds. */
export const peeringLimits = {
	/** How long a token can be exchanged for a credential. */
	tokenMs: 60 * 60_000,
	/** The age at which a cluster replaces its credential at a peer. */
	credentialMs: 24 * 60 * 60_000,
	/** How long a peer whose Peering was deleted is told so. */
	removedPeerMs: 30 * 24 * 60 * 60_000,
	/** What a stream may have sent that is not acknowledged: messages, and their bytes. */
	windowMessages: 1_024,
	windowBytes: 4 * 1024 * 1024,
	/** A stream ends if it has waited so long for an acknowledgment. */
	acknowledgeMs: 60_000,
	/** Streams of one peer at the same time. */
	streamsPerPeer: 64,
	/** A stream that has nothing to send says so at this interval. */
	heartbeatMs: 5_000,
	/** How often the position of a type moves that has no changes. */
	positionMs: 60_000,
	/** A stream from which nothing was received for so long is opened again. */
	silenceMs: 30_000,
	/** How long a call of a peer may take, streams excepted. */
	callMs: 10_000,
	/**
	 * Messages that one commit of an import covers, and their bytes: with the record, less than an etcd accepts by default. A
	 * batch that is too large for a storage is halved.
	 */
	batchMessages: 40,
	batchBytes: 1024 * 1024,
	/** The copies that one import stores, with their namespaces. */
	copies: 200_000,
	/**
	 * How often an import that receives nothing new records that it is up to date; where a server copies many partitions of
	 * other regions, how often each is recorded is such that they have one such commit in `recordsMs` together.
	 */
	recordMs: 30_000,
	recordsMs: 1_000,
	/** The pauses between two attempts to reach a peer. */
	shortestPauseMs: 500,
	longestPauseMs: 60_000,
	/** The clusters that a copy may have passed. */
	pathLength: 16,
	/** The generation of an Export that a peer sends, in characters. */
	generationLength: 64,
	/** What could not be copied and is listed by name; all of it is counted. */
	namedLeftOut: 100,
	/** The types that a region may offer. */
	offeredTypes: 1_000,
	/** How often a region is asked what it offers, and the pauses when it can't be reached. */
	pollMs: 5_000,
	/** How long one that does not respond holds up what others offer. */
	pollWaitMs: 1_000,
	/** The partitions that a region may offer to another one; each has a stream. */
	offers: 1_000,
	/** The parts of an Export. */
	types: 100,
	peers: 100,
	namespaces: 1_000,
	namePrefixes: 100,
	maskedFields: 100,
	/** Bytes of certificates in a token or a Peering. */
	caBytes: 64 * 1024,
} as const;
