import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Change } from "../define/change.ts";
import { yieldToEventLoop } from "../queue/pump.ts";
import { type CacheUpdater, requireId } from "./cache-updater.ts";
import { watchAfter, watchSnapshot } from "./open-watch.ts";
import { eventsPerTurn, versionOf, warnOfUnknown } from "./prime-cache.ts";

/** The cache to keep up to date, and callbacks that run after each change of it. */
export interface Follower {
	readonly client: ResourceClient;
	readonly updater: CacheUpdater;
	readonly logger: Logger;
	/** The cache has changed. */
	readonly onChange: (change: Change) => void;
	/** The cache contains all commits of the type up to that version. */
	readonly onVersion: (version: string) => void;
}

/**
 * Keeps one type in the cache up to date from a version on, until the watch ends. Always rejects then,
 * whatever the reason: a run that continued would act on a stale cache.
 */
export async function followWatch(
	follower: Follower,
	afterVersion: string,
	signal: AbortSignal,
): Promise<never> {
	const { client, updater } = follower;
	const resumed = watchAfter(client, updater, afterVersion, signal)[Symbol.asyncIterator]();
	let first: IteratorResult<WatchEvent>;
	try {
		first = await resumed.next();
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.OutOfRange) {
			return followFromSnapshot(follower, signal);
		}
		throw error;
	}
	return followLive(follower, resumed, first, signal);
}

/**
 * Used if the server can't resume the watch: collects a new snapshot and then applies it to the cache in
 * one step, so that readers never see a mixture of the two. Resources that it lacks are deleted.
 */
async function followFromSnapshot(follower: Follower, signal: AbortSignal): Promise<never> {
	const { client, updater } = follower;
	const events = watchSnapshot(client, updater, signal)[Symbol.asyncIterator]();
	const snapshot = new Map<string, Resource>();
	let handled = 0;
	for (let next = await events.next(); !next.done; next = await events.next()) {
		const event = next.value;
		switch (event.event.case) {
			case "upsert": {
				const resource = requireId(updater.type, event.event.value.resource);
				snapshot.set(nameKey(resource.id), resource);
				break;
			}
			case "delete":
				snapshot.delete(nameKey(requireId(updater.type, event.event.value.resource).id));
				break;
			case "endOfSnapshot":
				updater.replace(snapshot).forEach(follower.onChange);
				follower.onVersion(versionOf(event, updater));
				return followLive(follower, events, await events.next(), signal);
			case "bookmark":
				break;
			default:
				warnOfUnknown(event, updater, follower.logger);
		}
		handled += 1;
		if (handled % eventsPerTurn === 0) {
			await yieldToEventLoop();
		}
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${updater.type.key} ended before its snapshot did`);
}

async function followLive(
	follower: Follower,
	events: AsyncIterator<WatchEvent>,
	first: IteratorResult<WatchEvent>,
	signal: AbortSignal,
): Promise<never> {
	const { updater } = follower;
	let handled = 0;
	for (let next = first; !next.done; next = await events.next()) {
		apply(follower, next.value);
		handled += 1;
		if (handled % eventsPerTurn === 0) {
			await yieldToEventLoop();
		}
	}
	signal.throwIfAborted();
	throw new Error(`watch of ${updater.type.key} ended`);
}

function apply({ updater, onChange, onVersion, logger }: Follower, event: WatchEvent): void {
	let change: Change | undefined;
	switch (event.event.case) {
		case "upsert":
			change = updater.upsert(event.event.value.resource);
			break;
		case "delete":
			change = updater.delete(event.event.value.resource);
			break;
		case "bookmark":
		case "endOfSnapshot":
			break;
		default:
			warnOfUnknown(event, updater, logger);
	}
	if (change !== undefined) {
		onChange(change);
	}
	if (event.version !== "") {
		onVersion(event.version);
	}
}
