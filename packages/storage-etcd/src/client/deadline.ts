import type { Clock } from "@plinth/runtime";

/** A signal that aborts after a time, or with another signal. */
export interface Deadline extends Disposable {
	readonly signal: AbortSignal;
}

/** Starts a deadline. Dispose of it in any case. */
export function deadline(clock: Clock, afterMs: number, signal?: AbortSignal): Deadline {
	const controller = new AbortController();
	const timer = clock.setTimer(afterMs, () =>
		controller.abort(new Error(`no response within ${afterMs} ms`)),
	);
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
