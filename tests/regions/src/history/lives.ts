import { type Event, type History, type Key, type Seen, sightOf, type Write } from "./history.ts";

/**
 * One incarnation of a name, as far as users saw it:
 *
 *     bornBy ── seen ── aliveFrom ·····marked····· markedBy ·····removed····· absentBy
 *
 * Its deletion began between `aliveFrom` and `markedBy`; it acted on others until `absentBy` at the latest.
 */
export interface Life {
	readonly key: Key;
	/** Empty where nobody ever saw it: a write of unknown outcome may have made it. */
	readonly uid: string;
	/** The end of the call that saw it first. */
	readonly bornBy: number;
	/** The start of the last call that found it unmarked. */
	readonly aliveFrom: number;
	/** The end of the first call that found it marked or gone; `Infinity` where none did. */
	readonly markedBy: number;
	/** The end of the first call that found it gone; `Infinity` where none did. */
	readonly absentBy: number;
	/** What it was seen to be when it was last seen. */
	readonly last: Seen | undefined;
}

type Growing = { -readonly [Member in keyof Life]: Life[Member] };

/** What happened, by key and by incarnation. */
export interface Lives {
	readonly events: ReadonlyMap<Key, readonly Event[]>;
	readonly ofKey: ReadonlyMap<Key, readonly Life[]>;
	readonly ofUid: ReadonlyMap<string, Life>;
	/** All writes, by their notes. */
	readonly writes: ReadonlyMap<string, Write>;
}

/** Finds the incarnations in a history. */
export function livesOf(history: History): Lives {
	const events = Map.groupBy(history, ({ key }) => key);
	const writes = new Map(
		history.flatMap((event) => (event.call === "write" ? [[event.content.note, event]] : [])),
	);
	const ofKey = new Map([...events].map(([key, its]) => [key, livesOfKey(key, its, writes)]));
	const all = [...ofKey.values()].flat();
	const ofUid = new Map(all.filter(({ uid }) => uid !== "").map((life) => [life.uid, life]));
	return { events, ofKey, ofUid, writes };
}

/** Whether the incarnation may have been on its way out at some time between the two. */
export function mayBeGoing(life: Life, from: number, to: number): boolean {
	return life.markedBy < Infinity && life.aliveFrom <= to && life.absentBy >= from;
}

function livesOfKey(
	key: Key,
	events: readonly Event[],
	writes: ReadonlyMap<string, Write>,
): readonly Life[] {
	const lives: Growing[] = [];
	let current: Growing | undefined;
	/** The first write of unknown outcome since the resource was last seen. */
	let doubtfulFrom: number | undefined;
	for (const event of events) {
		if (event.call === "write" && event.outcome.kind === "unknown") {
			doubtfulFrom ??= event.from;
		}
		const sight = sightOf(event);
		if (sight === undefined) {
			continue;
		}
		const { seen } = sight;
		if (current !== undefined && current.uid !== seen?.uid) {
			current.markedBy = Math.min(current.markedBy, event.to);
			current.absentBy = event.to;
			current = undefined;
		}
		if (current === undefined && doubtfulFrom !== undefined) {
			lives.push(unseen(key, doubtfulFrom, event.to));
		}
		if (seen !== undefined) {
			if (current === undefined) {
				const bornFrom = writes.get(seen.note)?.from ?? event.from;
				current = { ...unseen(key, bornFrom, Infinity), uid: seen.uid, bornBy: event.to };
				lives.push(current);
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
	return lives;
}

function unseen(key: Key, bornFrom: number, goneBy: number): Growing {
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
