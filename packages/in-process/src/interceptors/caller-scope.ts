import { ConnectError } from "@connectrpc/connect";
import type { Clock, Timer } from "@plinth/runtime";
import { type AbortObserver, observeAbort, unobserveAbort } from "../call/abort-observers.ts";
import type { CallRequest } from "../call/call.ts";
import { canceledBy, deadlineExceeded } from "../call/wire-errors.ts";

/**
 * What a call is to the interceptors of the caller's side. They may make none, one or several calls
 * of it (a retry), so it has a signal of its own, which aborts with the caller's, at the deadline,
 * and when the call is over. The signal, and what it watches, is made when it is first touched.
 */
export class CallerScope implements AbortObserver {
	readonly #clock: Clock;
	readonly #request: CallRequest;
	#controller: AbortController | undefined;
	#timer: Timer | undefined;
	#isOver = false;

	constructor(clock: Clock, request: CallRequest) {
		this.#clock = clock;
		this.#request = request;
	}

	get signal(): AbortSignal {
		if (this.#controller === undefined) {
			this.#controller = new AbortController();
			this.#watch(this.#controller);
		}
		return this.#controller.signal;
	}

	/** The signal that a call within this scope watches: the caller's own does while it can. */
	get innerSignal(): AbortSignal | undefined {
		return this.#controller?.signal ?? this.#request.signal;
	}

	/** The call is over: nothing is watched any more, and the signal aborts. */
	end(reason?: unknown): void {
		this.#isOver = true;
		this.#timer?.cancel();
		if (this.#request.signal !== undefined) {
			unobserveAbort(this.#request.signal, this);
		}
		this.#controller?.abort(reason);
	}

	/** The call is over with an error. Returns what the caller gets: why it was aborted, if it was. */
	fail(thrown: unknown): ConnectError {
		const error = this.#abortion() ?? ConnectError.from(thrown);
		this.end(error);
		return error;
	}

	aborted(signal: AbortSignal): void {
		this.end(signal.reason);
	}

	#abortion(): ConnectError | undefined {
		const { signal, deadlineMs } = this.#request;
		if (this.#isOver && this.#controller !== undefined) {
			return canceledBy(this.#controller.signal.reason);
		}
		if (signal?.aborted) {
			return canceledBy(signal.reason);
		}
		if (deadlineMs !== undefined && this.#clock.monotonic() >= deadlineMs) {
			return deadlineExceeded();
		}
		return undefined;
	}

	#watch(controller: AbortController): void {
		const { signal, deadlineMs } = this.#request;
		if (this.#isOver) {
			controller.abort();
		} else if (signal?.aborted) {
			this.end(signal.reason);
		} else {
			if (signal !== undefined) {
				observeAbort(signal, this);
			}
			if (deadlineMs !== undefined) {
				const delayMs = deadlineMs - this.#clock.monotonic();
				this.#timer = this.#clock.setTimer(delayMs, () => this.end(deadlineExceeded()));
			}
		}
	}
}
