import type { WatchEvent } from "@plinth/proto";
import type { Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import { yieldToEventLoop } from "../queue/pump.ts";
import type { CacheUpdater } from "./cache-updater.ts";
import { watchSnapshot } from "./open-watch.ts";

/** How many events are handled before yielding to the event loop. */
export const eventsPerTurn = 1024;

/**
 * Fills the cache with the resources of one type from a snapshot, and returns the version of the snapshot.
 * Nothing is enqueued for them yet.
 */
export async function primeCache(
	client: ResourceClient,
	updater: CacheUpdater,
	logger: Logger,
	signal: AbortSignal,
): Promise<string> {
	const ended = new AbortController();
	const events = watchSnapshot(client, updater, AbortSignal.any([signal, ended.signal]));
	let handled = 0;
	try {
		for await (const event of events) {
			switch (event.event.case) {
				case "upsert":
					updater.upsert(event.event.value.resource);
					break;
				case "delete":
					updater.delete(event.event.value.resource);
					break;
				case "endOfSnapshot":
					return versionOf(event, updater);
				case "bookmark":
					break;
				default:
					warnOfUnknown(event, updater, logger);
			}
			handled += 1;
			if (handled % eventsPerTurn === 0) {
				await yieldToEventLoop();
			}
		}
	} finally {
		ended.abort();
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${updater.type.key} ended before its snapshot did`);
}

/** @throws Error if a snapshot ends without a version: a watch could not be resumed after it. */
export function versionOf(endOfSnapshot: WatchEvent, updater: CacheUpdater): string {
	if (endOfSnapshot.version === "") {
		throw new Error(`watch of ${updater.type.key} ended its snapshot without a version`);
	}
	return endOfSnapshot.version;
}

/** Logs a skipped event of an unknown kind, which a later version of the service may send. */
export function warnOfUnknown(event: WatchEvent, updater: CacheUpdater, logger: Logger): void {
	const version = event.version;
	logger.warn({ type: updater.type.key, version }, "skipped a watch event of an unknown kind");
}
