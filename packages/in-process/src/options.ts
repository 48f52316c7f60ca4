import type { ConnectRouterOptions, ContextValues, Interceptor } from "@connectrpc/connect";
import type { Clock, Scheduler } from "@plinth/runtime";

/** What the handlers' side of a transport can be told; it has the names of the library's options. */
export interface RouterOptions
	extends Pick<
		ConnectRouterOptions,
		"interceptors" | "maxTimeoutMs" | "requestGate" | "shutdownSignal"
	> {
	/**
	 * Makes the context values of a call, as handlers and their interceptors see them. They are not
	 * those of the caller: on the wire those do not travel either.
	 */
	readonly contextValues?: () => ContextValues;
}

/** The options of a transport; all of them have a default. */
export interface InProcessTransportOptions {
	/** The clock of deadlines. The machine's by default. */
	readonly clock?: Clock;
	/**
	 * Every hop between a caller and a handler goes through it: the call, each message, the end,
	 * cancellation. Microtasks by default.
	 */
	readonly scheduler?: Scheduler;
	/** Interceptors of the callers' side, the first one outermost. */
	readonly interceptors?: Interceptor[];
	/** Options of the handlers' side. What is given at a registration goes before it. */
	readonly router?: RouterOptions;
	/** The timeout of calls that do not say their own, in milliseconds. None by default. */
	readonly defaultTimeoutMs?: number;
	/**
	 * When it aborts, open calls end and later ones fail: with its reason where that is a
	 * `ConnectError`, with `Unavailable` otherwise.
	 */
	readonly shutdownSignal?: AbortSignal;
}
