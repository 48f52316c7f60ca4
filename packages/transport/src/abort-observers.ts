/** Receives the abort of a signal, until it is unregistered. */
export interface AbortObserver {
	/** Called once, when the signal aborts. Must not throw. */
	aborted(signal: AbortSignal): void;
}

/** The observers of one signal, and the one listener on it that serves them all. */
interface Observed {
	readonly observers: Set<AbortObserver>;
	readonly listener: () => void;
}

/**
 * A signal lives longer than a call, and one signal often serves thousands of concurrent calls.
 * Removing a listener is linear in the number of listeners, so calls share one:
 *
 *   signal ──listener──▶ Set { call, call, call, … }
 *
 * The listener is registered exactly as long as the set has a member.
 */
const observedSignals = new WeakMap<AbortSignal, Observed>();

/** Notifies `observer` when `signal` aborts. The signal must not have aborted yet. */
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

/** Unregisters `observer`. Has no effect if it is not registered or has been notified already. */
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
		// An observer may unregister others: a set's iterator skips members deleted meanwhile.
		for (const observer of observers) {
			observers.delete(observer);
			observer.aborted(signal);
		}
	};
	return { observers, listener };
}
