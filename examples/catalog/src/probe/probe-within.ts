import type { Clock } from "@plinth/runtime";
import type { ProbeResult, Prober } from "./prober.ts";
import { addressOf, type ProbeTarget } from "./target.ts";

/**
 * Probes once. The probe fails if the target does not respond within `timeoutMs`.
 *
 * @throws the reason of `signal` if it aborts.
 */
export async function probeWithin(
	prober: Prober,
	target: ProbeTarget,
	timeoutMs: number,
	clock: Clock,
	signal: AbortSignal,
): Promise<ProbeResult> {
	const timeout = new AbortController();
	const timer = clock.setTimer(timeoutMs, () => timeout.abort());
	try {
		return await prober(target, AbortSignal.any([signal, timeout.signal]));
	} catch (error) {
		if (timeout.signal.aborted && !signal.aborted) {
			return {
				passed: false,
				reason: "TimedOut",
				message: `${addressOf(target)} did not respond within ${timeoutMs} ms`,
			};
		}
		throw error;
	} finally {
		timer.cancel();
	}
}
