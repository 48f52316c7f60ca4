import { ConnectError } from "@connectrpc/connect";
import type { Clock, Timer } from "@plinth/runtime";
import { type AbortObserver, observeAbort, unobserveAbort } from "../abort-observers.ts";
import { canceledBy, deadlineExceeded } from "../call-errors.ts";
import type { CallRequest } from "../call-request.ts";

/**
 * The scope of a call for the interceptors of the caller's side. They may turn one call into none, one or
 * several (a retry), so the scope has its own signal, which aborts when the caller's does, at the deadline,
 * and when the call is over. The signal and its timer are created on first access.
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

	/** The signal for calls within this scope: the caller's, unless the scope's has been created. */
	get innerSignal(): AbortSignal | undefined {
		return this.#controller?.signal ?? this.#request.signal;
	}

	/** The call is over: the timer is canceled, and the signal aborts. */
	end(reason?: unknown): void {
		this.#isOver = true;
		this.#timer?.cancel();
		if (this.#request.signal !== undefined) {
			unobserveAbort(this.#request.signal, this);
		}
		this.#controller?.abort(reason);
	}

	/** The call has failed. Returns the error for the caller: if the call was aborted, the reason for that. */
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
