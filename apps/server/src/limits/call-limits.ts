import { defaultWatchesPerSet } from "@plinth/resource-service";

/** Limits on the calls of a listener. Calls beyond them fail with ResourceExhausted. */
export interface CallLimits {
	/** Concurrent calls whose response has not been read, excluding streams and health checks. */
	readonly callsInFlight: number;
	/** Concurrent streams, including watches. */
	readonly streamsInFlight: number;
	/** Concurrent streams of a subject, over all its tokens. */
	readonly streamsPerSubject: number;
	/** Watches in one set, of which each counts as a stream. */
	readonly watchesPerSet: number;
	/** Calls of one subject per second, on average. */
	readonly callsPerSecond: number;
	/** Calls that a subject may make at once after an idle period. */
	readonly callBurst: number;
	/** Request bytes of one subject per second, on average; the rest is read later. */
	readonly bytesPerSecond: number;
	/** Request bytes of one subject that are read at once after an idle period. */
	readonly byteBurst: number;
}

/** The default limits on calls. */
export const defaultCallLimits: CallLimits = {
	callsInFlight: 2_000,
	streamsInFlight: 20_000,
	streamsPerSubject: 5_000,
	watchesPerSet: defaultWatchesPerSet,
	callsPerSecond: 10_000,
	callBurst: 20_000,
	bytesPerSecond: 64 * 1024 * 1024,
	byteBurst: 256 * 1024 * 1024,
};
