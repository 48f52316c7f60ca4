import { type Event, type Key, sightOf, type Write } from "./history.ts";
import { type Life, type Lives, mayBeGoing } from "./lives.ts";
import { rules } from "./rules.ts";

/** Deletions that nobody asked for and no rule explains, and those that did not do what was answered. */
export function deletionProblems(lives: Lives): readonly string[] {
	const deaths = [...lives.ofKey.values()].flat().flatMap((life) => {
		const isGone = life.uid !== "" && life.markedBy < Infinity;
		return isGone && !isExplained(lives, life)
			? [`${life.key} (${life.uid}) was deleted without reason`]
			: [];
	});
	const answers = [...lives.events].flatMap(([key, events]) => takenBack(key, events));
	return [...deaths, ...answers, ...deletedThoughBlocked(lives)];
}

/** Whether a user may have deleted it. */
export function isAskedFor({ events }: Lives, { key, aliveFrom, markedBy }: Life): boolean {
	return (events.get(key) ?? []).some((event) => {
		const isDone = event.call === "delete" && event.outcome.kind !== "refused";
		return isDone && event.from <= markedBy && event.to >= aliveFrom;
	});
}

function isExplained(lives: Lives, life: Life): boolean {
	const writes = lastWrites(lives, life);
	return isAskedFor(lives, life) || writes.some((write) => mayGoWith(lives, write, life.markedBy));
}

/** What it may have been at its end: as it was last seen, or as writes of unknown outcome made it since. */
function lastWrites({ events, writes }: Lives, { key, last, aliveFrom, markedBy }: Life): Write[] {
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

/** Whether a resource with that content had to go by then because something else did. */
function mayGoWith({ ofKey, ofUid }: Lives, { from, content }: Write, by: number): boolean {
	for (const [field, target] of Object.entries(content.references)) {
		const targets = ofKey.get(target) ?? [];
		if (rules[field] === "CASCADE" && targets.some((each) => mayBeGoing(each, from, by))) {
			return true;
		}
	}
	const { owners } = content;
	return owners.length > 0 && owners.every((uid) => isGoneBy(ofUid.get(uid), by));
}

/** Whether an owner may have been found missing by then, for good. */
export function isGoneBy(owner: Life | undefined, by: number): boolean {
	return owner !== undefined && owner.markedBy < Infinity && owner.aliveFrom <= by;
}

/** What was deleted, as was answered, is never there again. */
function takenBack(key: Key, events: readonly Event[]): readonly string[] {
	let uid: string | undefined;
	const deleted = new Set<string>();
	return events.flatMap((event) => {
		if (event.call === "delete" && event.outcome.kind === "done" && uid !== undefined) {
			deleted.add(uid);
		}
		const sight = sightOf(event);
		if (sight === undefined) {
			return [];
		}
		const { seen } = sight;
		uid = seen?.uid;
		return seen !== undefined && !seen.marked && deleted.has(seen.uid)
			? [`${key} (${seen.uid}) is there, though its deletion was answered`]
			: [];
	});
}

/** A reference with BLOCK that was there before and after a deletion of its target was there all the time. */
function deletedThoughBlocked(lives: Lives): readonly string[] {
	return [...lives.events].flatMap(([referrer, events]) => {
		const sights = events.flatMap((event) => {
			const { seen } = sightOf(event) ?? {};
			return seen === undefined ? [] : [{ seen, from: event.from, to: event.to }];
		});
		return sights.flatMap(({ seen, to }, at) => {
			const next = sights[at + 1];
			// What is on its way out itself may block nobody any more.
			if (next?.seen.uid !== seen.uid || next.seen.note !== seen.note || next.seen.marked) {
				return [];
			}
			return Object.entries(seen.references).flatMap(([field, target]) => {
				const gone = lives.events.get(target)?.find((event) => {
					const isDone = event.call === "delete" && event.outcome.kind === "done";
					return isDone && event.outcome.value && event.from > to && event.to < next.from;
				});
				return rules[field] === "BLOCK" && next.seen.references[field] === target && gone
					? [`${target} was deleted though ${referrer} blocked it with ${field}`]
					: [];
			});
		});
	});
}
