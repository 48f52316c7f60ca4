import {
	type Event,
	type History,
	type Key,
	type ObservedResource,
	observationOf,
	type Write,
} from "./history.ts";

/**
 * One incarnation of a name, as observed by clients:
 *
 *     bornBy ── seen ── aliveFrom ·····marked····· markedBy ·····removed····· absentBy
 *
 * Its deletion started between `aliveFrom` and `markedBy`, and affected other resources until `absentBy` at most.
 */
export interface Incarnation {
	readonly key: Key;
	/** Empty if it was never observed: a write of unknown outcome may have created it. */
	readonly uid: string;
	/** The end of the first call that observed it. */
	readonly bornBy: number;
	/** The start of the last call that found it unmarked. */
	readonly aliveFrom: number;
	/** The end of the first call that found it marked or gone; `Infinity` if none did. */
	readonly markedBy: number;
	/** The end of the first call that found it gone; `Infinity` if none did. */
	readonly absentBy: number;
	/** The last observation. */
	readonly last: ObservedResource | undefined;
}

type MutableIncarnation = { -readonly [Member in keyof Incarnation]: Incarnation[Member] };

/** A history by key and by incarnation. */
export interface Incarnations {
	readonly events: ReadonlyMap<Key, readonly Event[]>;
	readonly ofKey: ReadonlyMap<Key, readonly Incarnation[]>;
	readonly ofUid: ReadonlyMap<string, Incarnation>;
	/** All writes, by their notes. */
	readonly writes: ReadonlyMap<string, Write>;
}

/** Finds the incarnations in a history. */
export function incarnationsOf(history: History): Incarnations {
	const events = Map.groupBy(history, ({ key }) => key);
	const writes = new Map(
		history.flatMap((event) => (event.call === "write" ? [[event.content.note, event]] : [])),
	);
	const ofKey = new Map(
		[...events].map(([key, its]) => [key, incarnationsOfKey(key, its, writes)]),
	);
	const all = [...ofKey.values()].flat();
	const ofUid = new Map(
		all.filter(({ uid }) => uid !== "").map((incarnation) => [incarnation.uid, incarnation]),
	);
	return { events, ofKey, ofUid, writes };
}

/** Whether the incarnation may have been in deletion at some time in the interval. */
export function mayBeInDeletion(incarnation: Incarnation, from: number, to: number): boolean {
	return (
		incarnation.markedBy < Infinity && incarnation.aliveFrom <= to && incarnation.absentBy >= from
	);
}

function incarnationsOfKey(
	key: Key,
	events: readonly Event[],
	writes: ReadonlyMap<string, Write>,
): readonly Incarnation[] {
	const incarnations: MutableIncarnation[] = [];
	let current: MutableIncarnation | undefined;
	/** The start of the first write of unknown outcome since the last observation. */
	let doubtfulFrom: number | undefined;
	for (const event of events) {
		if (event.call === "write" && event.outcome.kind === "unknown") {
			doubtfulFrom ??= event.from;
		}
		const observation = observationOf(event);
		if (observation === undefined) {
			continue;
		}
		const { seen } = observation;
		if (current !== undefined && current.uid !== seen?.uid) {
			current.markedBy = Math.min(current.markedBy, event.to);
			current.absentBy = event.to;
			current = undefined;
		}
		if (current === undefined && doubtfulFrom !== undefined) {
			incarnations.push(unseen(key, doubtfulFrom, event.to));
		}
		if (seen !== undefined) {
			if (current === undefined) {
				const bornFrom = writes.get(seen.note)?.from ?? event.from;
				current = { ...unseen(key, bornFrom, Infinity), uid: seen.uid, bornBy: event.to };
				incarnations.push(current);
			}
			current.last = seen;
			if (seen.marked) {
				current.markedBy = Math.min(current.markedBy, event.to);
			} else {
				current.aliveFrom = event.from;
			}
		}
		doubtfulFrom = undefined;
	}
	return incarnations;
}

function unseen(key: Key, bornFrom: number, goneBy: number): MutableIncarnation {
	return {
		key,
		uid: "",
		bornBy: goneBy,
		aliveFrom: bornFrom,
		markedBy: goneBy,
		absentBy: goneBy,
		last: undefined,
	};
}
