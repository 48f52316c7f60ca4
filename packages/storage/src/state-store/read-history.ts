import type { Resource } from "@plinth/proto";
import { type ResourceName, sameName } from "@plinth/resource";
import type { Scheduler } from "@plinth/runtime";
import type { StoredHistory, StoredVersion } from "../history.ts";
import type { EventLog, LogEntry } from "../watch/event-log.ts";

/** How many entries are read before others get their turn on the event loop: less than a millisecond. */
const entriesPerTurn = 2_000;

/**
 * Reads the versions of a name from the log of its family, the oldest first, while entries are added to its end and
 * dropped from its begin:
 *
 * ```
 *      dropped      |            kept
 *   ╳──╴  ╳──╴  ╳──╴|  base ──▶ e1 ──▶ e2 ──▶ e3 ──▶ … ──▶ tail
 *                      ▲         found     ▲ position       ▲ added meanwhile
 *                      since               after a turn
 * ```
 *
 * If the position itself is dropped during a turn, entries after it may be missing: the read begins again, and takes no more
 * turns, as it might be overtaken each time. It ends in the step in which it reaches the tail, so the versions and the stored
 * resource belong together.
 *
 * @param lookup - the resource stored now.
 */
export async function readHistory(
	log: EventLog,
	name: ResourceName,
	lookup: () => Resource | undefined,
	{ scheduler, signal }: { readonly scheduler: Scheduler; readonly signal: AbortSignal },
): Promise<StoredHistory> {
	let since = log.base;
	let position = since;
	let found: LogEntry[] = [];
	let isOvertaken = false;
	for (let left = entriesPerTurn; ; left -= 1) {
		if (left === 0 && !isOvertaken) {
			await scheduler.turn();
			signal.throwIfAborted();
			left = entriesPerTurn;
			if (position.cut) {
				isOvertaken = true;
				since = log.base;
				position = since;
				found = [];
			}
		}
		const { next } = position;
		if (next === undefined) {
			break;
		}
		if (sameName(next.resource.id, name)) {
			found.push(next);
		}
		position = next;
	}
	return {
		versions: [...found.toReversed().map(versionOf), ...firstVersion(found[0], lookup)],
		sinceVersion: String(since.revision),
		sinceMs: since.atMs,
	};
}

function versionOf({
	kind,
	revision,
	resource,
	previous,
	atMs,
	writtenBy,
}: LogEntry): StoredVersion {
	const updated = previous === undefined ? "created" : "updated";
	const change = kind === "delete" ? "deleted" : updated;
	return { change, version: String(revision), resource, atMs: atMs || undefined, writtenBy };
}

/** The version before the first that the log has, or the stored one if the log has none. */
function firstVersion(
	first: LogEntry | undefined,
	lookup: () => Resource | undefined,
): readonly StoredVersion[] {
	const resource = first === undefined ? lookup() : first.replaced;
	return resource === undefined
		? []
		: [
				{
					change: "unknown",
					version: resource.version,
					resource,
					atMs: undefined,
					writtenBy: undefined,
				},
			];
}
