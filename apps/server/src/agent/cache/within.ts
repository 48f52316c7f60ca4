import type { Clock } from "@plinth/runtime";

/** Waits for something, but no longer than `limitMs`. Rejects as `awaited` does. */
export async function within(
	clock: Clock,
	limitMs: number,
	awaited: Promise<unknown>,
): Promise<void> {
	const limit = Promise.withResolvers<void>();
	const timer = clock.setTimer(limitMs, limit.resolve);
	try {
		await Promise.race([awaited, limit.promise]);
	} finally {
		timer.cancel();
	}
}
