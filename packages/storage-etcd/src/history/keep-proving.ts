import { type Runtime, sleep } from "@plinth/runtime";
import type { StoreHistory } from "./store-history.ts";

/** How often a server checks that etcd has lost nothing, in milliseconds. */
const everyMs = 5000;

/**
 * Proves periodically that etcd has lost nothing: to a server that only watches, a restored etcd looks like an
 * idle one. Ends when the signal aborts. Never rejects.
 */
export async function keepProving(
	history: StoreHistory,
	{ clock, random }: Runtime,
	signal: AbortSignal,
): Promise<void> {
	while (!signal.aborted) {
		try {
			await sleep(clock, everyMs * (0.5 + random.next()), signal);
			await history.head(signal);
		} catch {
			// An etcd that does not respond proves nothing; lost history is handled when it is noticed.
		}
	}
}
