import { type BackoffPolicy, backoffDelayMs } from "./backoff.ts";
import { sleep } from "./clock.ts";
import type { Runtime } from "./runtime.ts";

/** How an operation is retried. */
export interface RetryOptions extends BackoffPolicy {
	readonly runtime: Pick<Runtime, "clock" | "random">;
	/** The maximum of attempts. */
	readonly attempts: number;
	/** Whether a further attempt may succeed. */
	readonly isRetryable: (failure: unknown) => boolean;
	/** Ends the wait for the next attempt. */
	readonly signal?: AbortSignal | undefined;
}

/**
 * Repeats an operation until it succeeds, with exponential backoff and jitter. The first delay is at least as long as
 * the failed attempt took, and the longest at least eight times as long: contenders whose attempts overlap spread
 * out in proportion to their attempts, whether these take microseconds or seconds.
 *
 * @throws the failure of the last attempt; the signal's reason.
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
	const { runtime, attempts, isRetryable, baseMs, maxMs, signal } = options;
	const { clock, random } = runtime;
	for (let failures = 1; ; failures += 1) {
		const startMs = clock.monotonic();
		try {
			return await attempt();
		} catch (failure) {
			if (failures >= attempts || !isRetryable(failure)) {
				throw failure;
			}
		}
		const tookMs = clock.monotonic() - startMs;
		const policy = { baseMs: Math.max(baseMs, tookMs), maxMs: Math.max(maxMs, 8 * tookMs) };
		await sleep(clock, backoffDelayMs(policy, failures, random), signal);
	}
}
