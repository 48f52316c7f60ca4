import { type Event, type Key, observationOf, type Write } from "./history.ts";
import { type Incarnation, type Incarnations, mayBeInDeletion } from "./incarnations.ts";
import { rules } from "./rules.ts";

/** Deletions without a request or a rule, and deletions that contradict their responses. */
export function deletionProblems(incarnations: Incarnations): readonly string[] {
	const unexplained = [...incarnations.ofKey.values()].flat().flatMap((incarnation) => {
		const isGone = incarnation.uid !== "" && incarnation.markedBy < Infinity;
		return isGone && !isExplained(incarnations, incarnation)
			? [`${incarnation.key} (${incarnation.uid}) was deleted without reason`]
			: [];
	});
	const returned = [...incarnations.events].flatMap(([key, events]) => reappeared(key, events));
	return [...unexplained, ...returned, ...deletedThoughBlocked(incarnations)];
}

/** Whether a client may have deleted it. */
export function isRequested(
	{ events }: Incarnations,
	{ key, aliveFrom, markedBy }: Incarnation,
): boolean {
	return (events.get(key) ?? []).some((event) => {
		const isDone = event.call === "delete" && event.outcome.kind !== "refused";
		return isDone && event.from <= markedBy && event.to >= aliveFrom;
	});
}

function isExplained(incarnations: Incarnations, incarnation: Incarnation): boolean {
	const writes = lastWrites(incarnations, incarnation);
	return (
		isRequested(incarnations, incarnation) ||
		writes.some((write) => mayFollow(incarnations, write, incarnation.markedBy))
	);
}

/** Its possible contents at its end: as last observed, or by later writes of unknown outcome. */
function lastWrites(
	{ events, writes }: Incarnations,
	{ key, last, aliveFrom, markedBy }: Incarnation,
): Write[] {
	const seen = writes.get(last?.note ?? "");
	const unknown = events
		.get(key)
		?.filter(
			(event): event is Write =>
				event.call === "write" &&
				event.outcome.kind === "unknown" &&
				event.from <= markedBy &&
				event.to >= aliveFrom,
		);
	return [...(seen === undefined ? [] : [seen]), ...(unknown ?? [])];
}

/** Whether a resource with this content may have been deleted by then because of another deletion. */
function mayFollow({ ofKey, ofUid }: Incarnations, { from, content }: Write, by: number): boolean {
	for (const [field, target] of Object.entries(content.references)) {
		const targets = ofKey.get(target) ?? [];
		if (rules[field] === "CASCADE" && targets.some((each) => mayBeInDeletion(each, from, by))) {
			return true;
		}
	}
	const { owners } = content;
	return owners.length > 0 && owners.every((uid) => mayBeLostBy(ofUid.get(uid), by));
}

/** Whether an owner may have been considered lost by then. */
export function mayBeLostBy(owner: Incarnation | undefined, by: number): boolean {
	return owner !== undefined && owner.markedBy < Infinity && owner.aliveFrom <= by;
}

/** Incarnations that reappear after a successful deletion. */
function reappeared(key: Key, events: readonly Event[]): readonly string[] {
	let uid: string | undefined;
	const deleted = new Set<string>();
	return events.flatMap((event) => {
		if (event.call === "delete" && event.outcome.kind === "done" && uid !== undefined) {
			deleted.add(uid);
		}
		const observation = observationOf(event);
		if (observation === undefined) {
			return [];
		}
		const { seen } = observation;
		uid = seen?.uid;
		return seen !== undefined && !seen.marked && deleted.has(seen.uid)
			? [`${key} (${seen.uid}) exists, although its deletion succeeded`]
			: [];
	});
}

/** Deletions during a BLOCK reference: if it exists before and after the deletion, it existed all the time. */
function deletedThoughBlocked(incarnations: Incarnations): readonly string[] {
	return [...incarnations.events].flatMap(([referrer, events]) => {
		const sights = events.flatMap((event) => {
			const { seen } = observationOf(event) ?? {};
			return seen === undefined ? [] : [{ seen, from: event.from, to: event.to }];
		});
		return sights.flatMap(({ seen, to }, at) => {
			const next = sights[at + 1];
			// A resource that is being deleted itself may no longer block.
			if (next?.seen.uid !== seen.uid || next.seen.note !== seen.note || next.seen.marked) {
				return [];
			}
			return Object.entries(seen.references).flatMap(([field, target]) => {
				const gone = incarnations.events.get(target)?.find((event) => {
					const isDone = event.call === "delete" && event.outcome.kind === "done";
					return isDone && event.outcome.value && event.from > to && event.to < next.from;
				});
				return rules[field] === "BLOCK" && next.seen.references[field] === target && gone
					? [`${target} was deleted although ${referrer} blocked it with ${field}`]
					: [];
			});
		});
	});
}
