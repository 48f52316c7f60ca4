import type { Clock } from "@plinth/runtime";

/** The longest delay of `setTimeout`: 2³¹ - 1 ms. Nothing in the page waits longer. */
const maxTimeoutMs = 2 ** 31 - 1;

/** The clock of a browser. That of `@plinth/runtime` is one of Node.js. */
export const browserClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	setTimer(delayMs, callback) {
		const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), maxTimeoutMs));
		return { cancel: () => clearTimeout(handle) };
	},
};
