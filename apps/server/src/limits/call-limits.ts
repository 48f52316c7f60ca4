/** What a listener lets its callers do at most; past it they get ResourceExhausted. */
export interface CallLimits {
	/** Calls at once whose response has not been read, excluding streams and health checks. */
	readonly callsInFlight: number;
	/** Streams at once, watches among them. */
	readonly streamsInFlight: number;
	/** Streams at once of one subject: what all its tokens do counts together. */
	readonly streamsPerSubject: number;
	/** Calls of one subject per second, on average. */
	readonly callsPerSecond: number;
	/** Calls that a subject may make at once after an idle period. */
	readonly callBurst: number;
	/** Bytes of requests of one subject per second, on average; more are read later. */
	readonly bytesPerSecond: number;
	/** Bytes that are read of a subject at once after an idle period. */
	readonly byteBurst: number;
}

/** What holds where nothing else is said. */
export const defaultCallLimits: CallLimits = {
	callsInFlight: 2_000,
	streamsInFlight: 20_000,
	streamsPerSubject: 5_000,
	callsPerSecond: 10_000,
	callBurst: 20_000,
	bytesPerSecond: 64 * 1024 * 1024,
	byteBurst: 256 * 1024 * 1024,
};
