import type { ConnectRouterOptions, ContextValues, Interceptor } from "@connectrpc/connect";
import type { Clock, Scheduler } from "@plinth/runtime";

/** Options of the handlers' side of a transport, named as the library's options. */
export interface RouterOptions
	extends Pick<
		ConnectRouterOptions,
		"interceptors" | "maxTimeoutMs" | "requestGate" | "shutdownSignal"
	> {
	/**
	 * Creates the context values of a call for its handler and the handler's interceptors. The
	 * caller's context values are not passed on: they do not travel on the wire either.
	 */
	readonly contextValues?: () => ContextValues;
}

/** The options of a transport; all of them have a default. */
export interface InProcessTransportOptions {
	/** The clock of deadlines. The system clock by default. */
	readonly clock?: Clock;
	/**
	 * Runs every hop between a caller and a handler: the call, each message, the end, a cancellation.
	 * `systemScheduler` by default: microtasks, which let the event loop run every few milliseconds.
	 */
	readonly scheduler?: Scheduler;
	/** Interceptors of the caller's side, the first one outermost. */
	readonly interceptors?: Interceptor[];
	/** Options of the handler's side. Options of a registration take precedence. */
	readonly router?: RouterOptions;
	/** The timeout of calls that set none, in milliseconds. None by default. */
	readonly defaultTimeoutMs?: number;
	/**
	 * When it aborts, open calls end and later ones fail: with its reason if that is a `ConnectError`,
	 * with `Unavailable` otherwise.
	 */
	readonly shutdownSignal?: AbortSignal;
}
