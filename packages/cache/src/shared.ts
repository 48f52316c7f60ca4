import type { Cache } from "./cache.ts";
import type { Queries, Reader } from "./reader.ts";
import { SourceReader } from "./source-reader.ts";

/**
 * A view of the cache for hot loops: its items are the cached objects, typed as read-only, since all
 * readers share them. In development and in tests they are frozen, too.
 */
export function sharedView<Q extends Queries>(cache: Cache<Q>): Reader<Q, "shared"> {
	return new SourceReader<Q, "shared">(cache);
}
