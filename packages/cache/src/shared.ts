import type { Cache } from "./cache.ts";
import type { Queries, Reader } from "./reader.ts";
import { SourceReader } from "./source-reader.ts";

/**
 * The cache for hot loops: its very objects, which all readers share and nobody may write to, typed
 * so. In development and in tests they are frozen as well.
 */
export function shared<Q extends Queries>(cache: Cache<Q>): Reader<Q, "shared"> {
	return new SourceReader<Q, "shared">(cache);
}
