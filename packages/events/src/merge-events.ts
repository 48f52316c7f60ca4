import { nameKey } from "@plinth/resource";
import { identityOf, type RecordedEvent } from "./recorded-event.ts";

/**
 * Events of several servers, or of several runs of one, as one: the same event of a resource has the sum of their counts,
 * and the ID of the one that occurred first. All else is as of its last occurrence.
 */
export function mergeEvents(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
	const same = Map.groupBy(events, (event) => `${nameKey(event.resource)}\0${identityOf(event)}`);
	return [...same.values()].flatMap(([event, ...others]) => {
		if (event === undefined) {
			return [];
		}
		return others.length === 0 ? [event] : [merge(event, others)];
	});
}

/** IDs decide between events of the same time, so that all servers show the same. */
function merge(event: RecordedEvent, others: readonly RecordedEvent[]): RecordedEvent {
	let [first, last, count] = [event, event, event.count];
	for (const each of others) {
		first = isBefore([each.firstMs, each.id], [first.firstMs, first.id]) ? each : first;
		last = isBefore([last.lastMs, last.id], [each.lastMs, each.id]) ? each : last;
		count += each.count;
	}
	return { ...last, id: first.id, firstMs: first.firstMs, count };
}

type Position = readonly [atMs: number, id: string];

function isBefore(a: Position, b: Position): boolean {
	return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}
