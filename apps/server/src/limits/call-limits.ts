/** What a listener lets its callers do at most; past it they get ResourceExhausted. */
export interface CallLimits {
	/** Calls at once, streams and exempt ones aside. */
	readonly callsInFlight: number;
	/** Streams at once, watches among them. */
	readonly streamsInFlight: number;
	/** Streams at once of one subject: what all its tokens do counts together. */
	readonly streamsPerSubject: number;
	/** Calls of one subject per second, on average. */
	readonly callsPerSecond: number;
	/** Calls that a subject may make at once after a quiet time. */
	readonly callBurst: number;
}

/** What holds where nothing else is said. */
export const defaultCallLimits: CallLimits = {
	callsInFlight: 2_000,
	streamsInFlight: 20_000,
	streamsPerSubject: 5_000,
	callsPerSecond: 10_000,
	callBurst: 20_000,
};
