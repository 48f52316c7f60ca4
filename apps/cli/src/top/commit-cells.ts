import type { Duration } from "@bufbuild/protobuf/wkt";
import type { ServerOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { type Cell, plainCell } from "../output/table.ts";
import { latency } from "./numbers.ts";

/** The text of what is not known: there were no commits, or the server is of an earlier version. */
export const unknown = "-";

/** The API tells no longer durations apart. */
const longestMs = 5_000;

/** The median of the commits of the last minute. */
export function medianCell({ storage }: ServerOverview): Cell {
	return plainCell(durationText(storage?.commitMedian));
}

/** The 99th percentile of the commits of the last minute. One that callers notice is marked. */
export function p99Cell({ storage }: ServerOverview): Cell {
	const p99 = storage?.commitP99;
	const ms = p99 === undefined ? 0 : exactMs(p99);
	return { text: durationText(p99), tone: ms >= 1_000 ? "bad" : ms >= 200 ? "unsure" : "plain" };
}

/** How many commits of the last minute a write had, in the mean. */
export function perWriteCell({ storage }: ServerOverview): Cell {
	const { batches = 0n, batchedCommits = 0n } = storage ?? {};
	return plainCell(
		batches === 0n ? unknown : (Number(batchedCommits) / Number(batches)).toFixed(1),
	);
}

function durationText(duration: Duration | undefined): string {
	if (duration === undefined) {
		return unknown;
	}
	const ms = exactMs(duration);
	return ms >= longestMs ? `>=${latency(longestMs)}` : latency(ms);
}

/** Unlike `durationMs`, it does not round up to whole milliseconds. */
function exactMs({ seconds, nanos }: Duration): number {
	return Number(seconds) * 1_000 + nanos / 1e6;
}
