import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Change } from "../define/change.ts";
import { breathe } from "../queue/pump.ts";
import { type CacheFeed, whole } from "./cache-feed.ts";
import { watchAfter, watchSnapshot } from "./open-watch.ts";
import { eventsInARow, versionOf, warnOfUnknown } from "./prime.ts";

/** What a follower tells, always after the cache has changed. */
export interface Follower {
	readonly client: ResourceClient;
	readonly feed: CacheFeed;
	readonly logger: Logger;
	/** The cache has changed. */
	readonly onChange: (change: Change) => void;
	/** The cache holds all commits of the type up to that version. */
	readonly onVersion: (version: string) => void;
}

/**
 * Keeps the cache of one type up to date from a version on, for as long as the watch holds. Rejects
 * when it ends, for whatever reason: a run that goes on would act on a cache that has stopped.
 */
export async function follow(
	follower: Follower,
	afterVersion: string,
	signal: AbortSignal,
): Promise<never> {
	const { client, feed } = follower;
	const resumed = watchAfter(client, feed.type, afterVersion, signal)[Symbol.asyncIterator]();
	let first: IteratorResult<WatchEvent>;
	try {
		first = await resumed.next();
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.OutOfRange) {
			return followAfresh(follower, signal);
		}
		throw error;
	}
	return followLive(follower, resumed, first, signal);
}

/**
 * Where the server can't resume: the snapshot is collected aside and then put into the cache in
 * one go, so that nobody sees a mixture of the two; what it lacks is deleted.
 */
async function followAfresh(follower: Follower, signal: AbortSignal): Promise<never> {
	const { client, feed } = follower;
	const events = watchSnapshot(client, feed.type, signal)[Symbol.asyncIterator]();
	const snapshot = new Map<string, Resource>();
	let handled = 0;
	for (let next = await events.next(); !next.done; next = await events.next()) {
		const event = next.value;
		switch (event.event.case) {
			case "upsert": {
				const resource = whole(feed.type, event.event.value.resource);
				snapshot.set(nameKey(resource.id), resource);
				break;
			}
			case "delete":
				snapshot.delete(nameKey(whole(feed.type, event.event.value.resource).id));
				break;
			case "endOfSnapshot":
				feed.replace(snapshot).forEach(follower.onChange);
				follower.onVersion(versionOf(event, feed));
				return followLive(follower, events, await events.next(), signal);
			case "bookmark":
				break;
			default:
				warnOfUnknown(event, feed, follower.logger);
		}
		handled += 1;
		if (handled % eventsInARow === 0) {
			await breathe();
		}
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${feed.type.key} ended before its snapshot did`);
}

async function followLive(
	follower: Follower,
	events: AsyncIterator<WatchEvent>,
	first: IteratorResult<WatchEvent>,
	signal: AbortSignal,
): Promise<never> {
	const { feed } = follower;
	let handled = 0;
	for (let next = first; !next.done; next = await events.next()) {
		apply(follower, next.value);
		handled += 1;
		if (handled % eventsInARow === 0) {
			await breathe();
		}
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${feed.type.key} ended`);
}

function apply({ feed, onChange, onVersion, logger }: Follower, event: WatchEvent): void {
	switch (event.event.case) {
		case "upsert":
			onChange(feed.upsert(event.event.value.resource));
			break;
		case "delete":
			onChange(feed.delete(event.event.value.resource));
			break;
		case "bookmark":
		case "endOfSnapshot":
			break;
		default:
			warnOfUnknown(event, feed, logger);
	}
	if (event.version !== "") {
		onVersion(event.version);
	}
}
