import { type Runtime, sleep } from "@plinth/runtime";
import type { StoreHistory } from "./store-history.ts";

/** How often a server without commits checks that etcd has lost nothing, in milliseconds. */
const everyMs = 5000;

/**
 * Proves again and again that etcd has lost nothing: a restored etcd looks like a quiet one to a server
 * that only watches. Ends when the signal aborts. Never rejects.
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
			// An etcd that does not respond proves nothing; lost history is handled where it is noticed.
		}
	}
}
