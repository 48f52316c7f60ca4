import type { Clock } from "@plinth/runtime";

/** A signal that aborts after a time, or with another signal. */
export interface Deadline extends Disposable {
	readonly signal: AbortSignal;
}

/** The reason of the signal when the time is over. */
export class NoResponse extends Error {
	constructor(afterMs: number) {
		super(`no response within ${afterMs} ms`);
		this.name = "NoResponse";
	}
}

/** Starts a deadline. Dispose of it in any case. */
export function deadline(clock: Clock, afterMs: number, signal?: AbortSignal): Deadline {
	const controller = new AbortController();
	const timer = clock.setTimer(afterMs, () => controller.abort(new NoResponse(afterMs)));
	const onAbort = () => controller.abort(signal?.reason);
	if (signal?.aborted) {
		onAbort();
	}
	signal?.addEventListener("abort", onAbort, { once: true });
	return {
		signal: controller.signal,
		[Symbol.dispose]: () => {
			timer.cancel();
			signal?.removeEventListener("abort", onAbort);
		},
	};
}
