/** What wants to know that a signal aborts, until it says otherwise. */
export interface AbortObserver {
	/** Called once, when the signal aborts. Must not throw. */
	aborted(signal: AbortSignal): void;
}

/** The observers of one signal, behind the one listener that it is given. */
interface Observed {
	readonly observers: Set<AbortObserver>;
	readonly listener: () => void;
}

/**
 * A signal lives longer than a call, and one signal often serves thousands of calls at once. A
 * listener per call would make each of them walk the list of all others, so calls share one:
 *
 *   signal ──listener──▶ Set { call, call, call, … }
 *
 * The listener is there exactly as long as the set has a member.
 */
const observedSignals = new WeakMap<AbortSignal, Observed>();

/** Has `observer` told when `signal` aborts. The signal must not have aborted yet. */
export function observeAbort(signal: AbortSignal, observer: AbortObserver): void {
	let observed = observedSignals.get(signal);
	if (observed === undefined) {
		observed = observe(signal);
		observedSignals.set(signal, observed);
	}
	if (observed.observers.size === 0) {
		signal.addEventListener("abort", observed.listener);
	}
	observed.observers.add(observer);
}

/** Forgets `observer`. Forgetting one that is not known, or was told already, does nothing. */
export function unobserveAbort(signal: AbortSignal, observer: AbortObserver): void {
	const observed = observedSignals.get(signal);
	if (observed?.observers.delete(observer) && observed.observers.size === 0) {
		signal.removeEventListener("abort", observed.listener);
	}
}

function observe(signal: AbortSignal): Observed {
	const observers = new Set<AbortObserver>();
	const listener = () => {
		signal.removeEventListener("abort", listener);
		// One observer may forget others: a set's iterator skips what was deleted meanwhile.
		for (const observer of observers) {
			observers.delete(observer);
			observer.aborted(signal);
		}
	};
	return { observers, listener };
}
