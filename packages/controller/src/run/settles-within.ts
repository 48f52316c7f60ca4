import type { Clock } from "@plinth/runtime";

/** Waits for the promise for at most `limitMs`; returns whether it has settled. */
export async function settlesWithin(
	clock: Clock,
	limitMs: number,
	promise: Promise<unknown>,
): Promise<boolean> {
	const timeout = Promise.withResolvers<boolean>();
	const timer = clock.setTimer(limitMs, () => timeout.resolve(false));
	const settled = promise.then(
		() => true,
		() => true,
	);
	try {
		return await Promise.race([settled, timeout.promise]);
	} finally {
		timer.cancel();
	}
}
