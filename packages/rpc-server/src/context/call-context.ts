import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Clock, Deadline, Deadlines } from "@plinth/runtime";
import type { HeaderFields, RequestHead } from "../carrier.ts";
import { LazyHeaders } from "./lazy-headers.ts";

/** The parts that a context is made of. */
export interface CallContextInit {
	readonly method: DescMethod;
	readonly protocolName: string;
	readonly head: RequestHead;
	readonly values: ContextValues;
	readonly timeoutMs: number | undefined;
	/** The headers and trailers that the protocol sets in a response. Implementations see them, too. */
	readonly responseHeader: HeaderFields;
	readonly responseTrailer: HeaderFields;
}

/** Shared by all calls: creating an error per call would cost a stack trace. */
const ended = new DOMException("the call has ended", "AbortError");

/**
 * The context that interceptors and implementations receive. Its parts are created on first access: headers and abort
 * signals cost more than the rest of a short call, and most calls need none.
 *
 * The properties are getters of the class: pass the context on as it is, since a spread copies no getters.
 */
export class CallContext implements HandlerContext {
	readonly #init: CallContextInit;
	readonly #clock: Clock;
	readonly #deadlines: Deadlines;
	/** The deadline on the clock's monotonic scale. */
	readonly #deadlineMs: number | undefined;
	#requestHeader: Headers | undefined;
	#responseHeader: Headers | undefined;
	#responseTrailer: Headers | undefined;
	#controller: AbortController | undefined;
	#deadline: Deadline | undefined;
	#isAborted = false;
	#reason: unknown;

	constructor(init: CallContextInit, clock: Clock, deadlines: Deadlines) {
		this.#init = init;
		this.#clock = clock;
		this.#deadlines = deadlines;
		const { timeoutMs } = init;
		this.#deadlineMs = timeoutMs === undefined ? undefined : clock.monotonic() + timeoutMs;
	}

	get method(): DescMethod {
		return this.#init.method;
	}

	get service(): DescService {
		return this.#init.method.parent;
	}

	get protocolName(): string {
		return this.#init.protocolName;
	}

	get requestMethod(): string {
		return this.#init.head.method;
	}

	get url(): string {
		return this.#init.head.url;
	}

	get values(): ContextValues {
		return this.#init.values;
	}

	get requestHeader(): Headers {
		this.#requestHeader ??= new LazyHeaders(this.#init.head);
		return this.#requestHeader;
	}

	get responseHeader(): Headers {
		this.#responseHeader ??= new Headers(this.#init.responseHeader);
		return this.#responseHeader;
	}

	get responseTrailer(): Headers {
		this.#responseTrailer ??= new Headers(this.#init.responseTrailer);
		return this.#responseTrailer;
	}

	/** The headers of the response, if they were accessed. */
	get touchedHeader(): Headers | undefined {
		return this.#responseHeader;
	}

	/** The trailers of the response, if they were accessed. */
	get touchedTrailer(): Headers | undefined {
		return this.#responseTrailer;
	}

	/**
	 * A standalone function, so that destructuring `{ timeoutMs }` works. In whole milliseconds, rounded up: Connect's
	 * clients send what they are passed, and servers accept no fractions.
	 */
	get timeoutMs(): () => number | undefined {
		const deadlineMs = this.#deadlineMs;
		const clock = this.#clock;
		return () => (deadlineMs === undefined ? undefined : Math.ceil(deadlineMs - clock.monotonic()));
	}

	get signal(): AbortSignal {
		if (this.#controller === undefined) {
			this.#controller = new AbortController();
			if (this.#isAborted) {
				this.#controller.abort(this.#reason);
			} else if (this.#deadlineMs !== undefined) {
				this.#awaitDeadline(this.#deadlineMs);
			}
		}
		return this.#controller.signal;
	}

	/** Whether the signal has aborted, or would have aborted if it had been created. */
	get isAborted(): boolean {
		return this.#isAborted || this.#hasExpired();
	}

	/** Aborts the signal. Only the first reason counts; without one, the call has ended. */
	abort(reason: unknown = ended): void {
		if (!this.#isAborted) {
			this.#isAborted = true;
			this.#reason = this.#hasExpired() ? deadlineExceeded() : reason;
			this.#deadline?.cancel();
			this.#controller?.abort(this.#reason);
		}
	}

	#awaitDeadline(deadlineMs: number): void {
		if (this.#hasExpired()) {
			this.abort();
		} else {
			this.#deadline = this.#deadlines.set(deadlineMs, () => this.abort());
		}
	}

	#hasExpired(): boolean {
		return this.#deadlineMs !== undefined && this.#clock.monotonic() >= this.#deadlineMs;
	}
}

/** The reason of a signal that aborted at the deadline. */
function deadlineExceeded(): ConnectError {
	return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
