import type { WatchEvent } from "@plinth/proto";
import type { Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import { breathe } from "../queue/pump.ts";
import type { CacheFeed } from "./cache-feed.ts";
import { watchSnapshot } from "./open-watch.ts";

/** How many events are handled before timers and input of the process get their turn. */
export const eventsInARow = 1024;

/**
 * Fills the cache with one type from a snapshot, and answers the snapshot's version. Nothing but the
 * cache learns of what is in it.
 */
export async function prime(
	client: ResourceClient,
	feed: CacheFeed,
	logger: Logger,
	signal: AbortSignal,
): Promise<string> {
	const ended = new AbortController();
	const events = watchSnapshot(client, feed.type, AbortSignal.any([signal, ended.signal]));
	let handled = 0;
	try {
		for await (const event of events) {
			switch (event.event.case) {
				case "upsert":
					feed.upsert(event.event.value.resource);
					break;
				case "delete":
					feed.delete(event.event.value.resource);
					break;
				case "endOfSnapshot":
					return versionOf(event, feed);
				case "bookmark":
					break;
				default:
					warnOfUnknown(event, feed, logger);
			}
			handled += 1;
			if (handled % eventsInARow === 0) {
				await breathe();
			}
		}
	} finally {
		ended.abort();
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${feed.type.key} ended before its snapshot did`);
}

/** @throws Error where a snapshot ends without saying which one it was: nothing could follow it. */
export function versionOf(endOfSnapshot: WatchEvent, feed: CacheFeed): string {
	if (endOfSnapshot.version === "") {
		throw new Error(`watch of ${feed.type.key} ended its snapshot without a version`);
	}
	return endOfSnapshot.version;
}

/** Says that an event is skipped, as a later version of the service may send others. */
export function warnOfUnknown(event: WatchEvent, feed: CacheFeed, logger: Logger): void {
	const version = event.version;
	logger.warn({ type: feed.type.key, version }, "skipped a watch event of an unknown kind");
}
