import type { Message } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";

/**
 * Observes the calls of a router, as metrics, traces and audit logs do. Observers do the same as the outermost
 * interceptors at a fraction of the cost. They must not throw.
 */
export interface CallObserver {
	/**
	 * A call was admitted. The message of a unary call has arrived; that of a streaming call may not have, and is absent.
	 *
	 * @returns the observer of this call; `undefined` if it is not observed.
	 */
	started(call: HandlerContext, message: Message | undefined): ObservedCall | undefined;
}

/** Observes one call. */
export interface ObservedCall {
	/** Calls the implementation, within the observer's context, such as a span. */
	run?<T>(implementation: () => T): T;
	/** A message of a stream was passed on to be sent. */
	sent?(): void;
	/** The client is ready for the next message of a stream. */
	ready?(): void;
	/** The implementation has returned, or the call was ended. Called once, with the failure if there is one. */
	ended(failure: unknown): void;
}

/** Several observers of one call, as one. */
class ObservedCalls implements ObservedCall {
	readonly #calls: readonly ObservedCall[];

	constructor(calls: readonly ObservedCall[]) {
		this.#calls = calls;
	}

	run<T>(implementation: () => T): T {
		let innermost = implementation;
		for (let index = this.#calls.length - 1; index >= 0; index -= 1) {
			const call = this.#calls[index];
			if (call?.run !== undefined) {
				const inner = innermost;
				innermost = () => (call.run === undefined ? inner() : call.run(inner));
			}
		}
		return innermost();
	}

	sent(): void {
		for (const call of this.#calls) {
			call.sent?.();
		}
	}

	ready(): void {
		for (const call of this.#calls) {
			call.ready?.();
		}
	}

	ended(failure: unknown): void {
		// The last is the innermost.
		for (let index = this.#calls.length - 1; index >= 0; index -= 1) {
			this.#calls[index]?.ended(failure);
		}
	}
}

/** Starts to observe a call; `undefined` if no observer does. */
export function observe(
	observers: readonly CallObserver[],
	call: HandlerContext,
	message: Message | undefined,
): ObservedCall | undefined {
	let only: ObservedCall | undefined;
	let several: ObservedCall[] | undefined;
	for (const observer of observers) {
		const observed = observer.started(call, message);
		if (observed === undefined) {
			continue;
		}
		if (only === undefined) {
			only = observed;
		} else if (several === undefined) {
			several = [only, observed];
		} else {
			several.push(observed);
		}
	}
	return several === undefined ? only : new ObservedCalls(several);
}
