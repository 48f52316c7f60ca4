import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import { ulidTimeMs } from "@plinth/resource";

/**
 * When a resource was last written, as it tells itself: each write sets a generation, which is a ULID, or the time of a
 * status. In milliseconds since 1970; `undefined` if it does not tell.
 */
export function lastWriteMs({ generation, status }: Resource): number | undefined {
	const times = Object.values(status).flatMap(({ updatedAt }) =>
		updatedAt === undefined ? [] : [timestampMs(updatedAt)],
	);
	const writtenMs = ulidTimeMs(generation);
	const known = writtenMs === undefined ? times : [...times, writtenMs];
	return known.length === 0 ? undefined : Math.max(...known);
}
