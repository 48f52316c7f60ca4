/** A timer that was set. */
export interface WatchTimer {
	cancel(): void;
}

/** Time and randomness of a client. The clocks of `@plinth/runtime` have this interface. */
export interface WatchClock {
	/** Milliseconds on a clock that is never set back. */
	monotonic(): number;
	setTimer(delayMs: number, onTime: () => void): WatchTimer;
}

/** The clock of the browser or of Node.js. */
export const systemClock: WatchClock = {
	monotonic: () => performance.now(),
	setTimer(delayMs, onTime) {
		const timer = setTimeout(onTime, delayMs);
		return { cancel: () => clearTimeout(timer) };
	},
};
