import type { ConnectError } from "@connectrpc/connect";
import type { Clock, Timer } from "@plinth/runtime";
import {
	type AbortObserver,
	type CallRequest,
	canceledBy,
	deadlineExceeded,
	observeAbort,
	unobserveAbort,
} from "@plinth/transport";
import { CallContext } from "./call-context.ts";
import type { Hops } from "./hops.ts";
import type { Route, RouteTable } from "./route-table.ts";
import { asWireError, callerGone, shutDownBy } from "./wire-errors.ts";

/** The parts that all calls of a transport share. */
export interface Environment {
	readonly clock: Clock;
	readonly hops: Hops;
	readonly routes: RouteTable;
}

/** The two ends of a call, notified when it is broken off. Neither method may throw. */
export interface CallEnds {
	/** The caller's end: pending and later reads fail. */
	failCaller(error: ConnectError): void;
	/** The handler's end: its signal has aborted, and whatever it still produces is dropped. */
	releaseHandler(reason: ConnectError): void;
}

/**
 * The lifecycle of one call: what may end it, and in which order its two ends are notified.
 *
 * A call is open until the caller has its response (`close`), or until one of these breaks it off:
 *
 *   by            the caller's end             the handler's end
 *   ───────────   ──────────────────────────   ──────────────────────────────────────
 *   the caller    at once                      after a hop: a cancellation travels
 *   the deadline  at once, after the handler   at once: both sides have the same clock
 *   a shutdown    at once, after the handler   at once: it is the handler's server
 *
 * Invariants, for any order in which the scheduler runs tasks:
 *
 * - Exactly one of `close` and the three above takes effect; later ones find the call closed and do
 *   nothing. So a response in flight when the caller cancels is dropped, as is a cancellation in
 *   flight when the handler finishes.
 * - The handler's signal aborts exactly once: when the handler has finished (with the error that it
 *   threw, if any), or when the call is broken off. It aborts before the handler's stream is
 *   released, so that its `finally` blocks find it aborted.
 * - Only the handler's side aborts the handler's signal; the caller's signal is listened to and
 *   never aborted.
 * - A closed call has no timer and observes no signal: a caller's or a shutdown's signal that
 *   outlives its calls retains none of them.
 * - A call that was broken off before it reached the handler never reaches it.
 */
export class Call implements AbortObserver {
	readonly context: CallContext;
	readonly #hops: Hops;
	readonly #ends: CallEnds;
	readonly #callerSignal: AbortSignal | undefined;
	readonly #shutdownSignal: AbortSignal | undefined;
	#timer: Timer | undefined;
	#open = true;

	/** Opens the call. If a signal has aborted already, the caller's end fails at once. */
	constructor(environment: Environment, route: Route, request: CallRequest, ends: CallEnds) {
		const { clock } = environment;
		this.context = new CallContext(route, clock, request.header, request.deadlineMs);
		this.#hops = environment.hops;
		this.#ends = ends;
		this.#callerSignal = request.signal;
		this.#shutdownSignal = route.options.shutdownSignal;
		if (this.#callerSignal !== undefined) {
			this.#observe(this.#callerSignal);
		}
		if (this.#shutdownSignal !== undefined) {
			this.#observe(this.#shutdownSignal);
		}
		if (this.#open && request.deadlineMs !== undefined) {
			this.#timer = clock.setTimer(request.deadlineMs - clock.monotonic(), () => this.#expire());
		}
	}

	get isOpen(): boolean {
		return this.#open;
	}

	/** The caller has its response. Returns false if the call was broken off before. */
	close(): boolean {
		if (!this.#open) {
			return false;
		}
		this.#open = false;
		this.#timer?.cancel();
		if (this.#callerSignal !== undefined) {
			unobserveAbort(this.#callerSignal, this);
		}
		if (this.#shutdownSignal !== undefined) {
			unobserveAbort(this.#shutdownSignal, this);
		}
		return true;
	}

	/** The caller cancels the call and receives `error`. */
	cancel(error: ConnectError): void {
		if (this.close()) {
			this.#ends.failCaller(error);
			this.#hops.ask(() => this.#stopHandler(callerGone()));
		}
	}

	aborted(signal: AbortSignal): void {
		if (signal === this.#callerSignal) {
			this.cancel(canceledBy(signal.reason));
		} else {
			this.#breakOff(shutDownBy(signal.reason));
		}
	}

	#observe(signal: AbortSignal): void {
		if (signal.aborted) {
			this.aborted(signal);
		} else if (this.#open) {
			observeAbort(signal, this);
		}
	}

	#expire(): void {
		this.#breakOff(deadlineExceeded());
	}

	#breakOff(reason: ConnectError): void {
		if (this.close()) {
			this.#stopHandler(reason);
			this.#ends.failCaller(asWireError(reason, this.context));
		}
	}

	#stopHandler(reason: ConnectError): void {
		this.context.abort(reason);
		this.#ends.releaseHandler(reason);
	}
}
