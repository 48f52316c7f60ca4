import type { WatchEvent } from "@plinth/proto";
import { type ResourceType, typeOf } from "@plinth/resource";
import type { ResourceClient } from "../client/resource-client.ts";
import type { WatchedRegions } from "../define/watch.ts";

/** The header, and its value, for snapshots that are not older than the call. */
const consistent = { "x-plinth-consistency-mode": "consistent" } as const;

/** What a watch is opened for. */
export interface Watched {
	readonly type: ResourceType;
	readonly regions: WatchedRegions;
}

/** Opens a watch of all resources of a type: a snapshot that is not older than the call first. */
export function watchSnapshot(
	client: ResourceClient,
	watched: Watched,
	signal: AbortSignal,
): AsyncIterable<WatchEvent> {
	return client.watchList(
		{ ...queryOf(watched), bookmarks: true },
		{ signal, headers: consistent },
	);
}

/** Opens a watch of what has happened to a type's resources after a version, and of what will. */
export function watchAfter(
	client: ResourceClient,
	watched: Watched,
	afterVersion: string,
	signal: AbortSignal,
): AsyncIterable<WatchEvent> {
	return client.watchList({ ...queryOf(watched), afterVersion, bookmarks: true }, { signal });
}

/**
 * One watch has the resources of a type and copies of all regions, in the order of their commits, so that one version says
 * how far the cache is. The updater skips copies of regions that were not asked for.
 */
function queryOf({ type, regions }: Watched) {
	return { type: typeOf(type.type), ...(regions.length > 0 && { region: "*" }) };
}
