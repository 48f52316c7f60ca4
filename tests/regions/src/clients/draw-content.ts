import type { Content, Key, ObservedResource, Place } from "../history/history.ts";
import { keyOf } from "../history/history.ts";
import { kinds, places } from "./places.ts";
import type { SharedState } from "./shared-state.ts";

/** The probability that a field is set. */
const isSet: Readonly<Record<string, number>> = {
	project: 0.45,
	rack: 0.7,
	lentTo: 0.6,
	standby: 0.4,
};

/** Draws the content of a write. Most references have targets that are believed to exist. */
export function drawContent(shared: SharedState, place: Place, note: string): Content {
	const { random, known } = shared;
	const references: Record<string, Key> = {};
	for (const [field, kind] of Object.entries(kinds[place.kind].fields)) {
		if (random.next() >= (isSet[field] ?? 0)) {
			continue;
		}
		const others = places.filter((each) => each.kind === kind && each !== place).map(keyOf);
		const there = others.filter((key) => known.get(key) !== "absent");
		const from = there.length > 0 && random.next() < 0.9 ? there : others;
		const target = from[Math.floor(random.next() * from.length)];
		if (target !== undefined) {
			references[field] = target;
		}
	}
	return { note, references, owners: place.kind === "AccessKey" ? drawOwners(shared) : [] };
}

/** Draws up to two devices of any region that existed recently. */
function drawOwners({ random, known }: SharedState): readonly string[] {
	const devices = places
		.filter(({ kind }) => kind === "Device")
		.map((place) => known.get(keyOf(place)))
		.filter((each): each is ObservedResource => each !== undefined && each !== "absent");
	const drawn = Array.from({ length: Math.floor(random.next() * 3) }, () => {
		return devices[Math.floor(random.next() * devices.length)]?.uid;
	});
	return [...new Set(drawn.filter((uid) => uid !== undefined))];
}
