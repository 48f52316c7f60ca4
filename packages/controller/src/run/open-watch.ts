import type { WatchEvent } from "@plinth/proto";
import { type ResourceType, typeOf } from "@plinth/resource";
import type { ResourceClient } from "../client/resource-client.ts";

/** The header, and its value, for snapshots that are not older than the call. */
const consistent = { "x-plinth-consistency-mode": "consistent" } as const;

/** Opens a watch of all resources of a type: a snapshot that is not older than the call first. */
export function watchSnapshot(
	client: ResourceClient,
	type: ResourceType,
	signal: AbortSignal,
): AsyncIterable<WatchEvent> {
	return client.watchList(
		{ type: typeOf(type.type), bookmarks: true },
		{ signal, headers: consistent },
	);
}

/** Opens a watch of what has happened to a type's resources after a version, and of what will. */
export function watchAfter(
	client: ResourceClient,
	type: ResourceType,
	afterVersion: string,
	signal: AbortSignal,
): AsyncIterable<WatchEvent> {
	return client.watchList({ type: typeOf(type.type), afterVersion, bookmarks: true }, { signal });
}
