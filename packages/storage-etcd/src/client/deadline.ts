import type { Clock } from "@plinth/runtime";

/** A signal that aborts when a time is over, or with another signal. */
export interface Deadline extends Disposable {
	readonly signal: AbortSignal;
}

/** Starts the time. To be disposed of, whether it is over or not. */
export function deadline(clock: Clock, afterMs: number, signal?: AbortSignal): Deadline {
	const controller = new AbortController();
	const timer = clock.setTimer(afterMs, () =>
		controller.abort(new Error(`no answer within ${afterMs} ms`)),
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
