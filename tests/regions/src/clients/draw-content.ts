import type { Content, Key, Place, Seen } from "../history/history.ts";
import { keyOf } from "../history/history.ts";
import { kinds, places } from "./places.ts";
import type { World } from "./world.ts";

/** How often a field is set. */
const isSet: Readonly<Record<string, number>> = {
	project: 0.45,
	rack: 0.7,
	lentTo: 0.6,
	standby: 0.4,
};

/** What a client writes: references to what it takes to be there, most of the time. */
export function drawContent(world: World, place: Place, note: string): Content {
	const { random, known } = world;
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
	return { note, references, owners: place.kind === "AccessKey" ? drawOwners(world) : [] };
}

/** None, one or two devices of any region; those that were there not long ago. */
function drawOwners({ random, known }: World): readonly string[] {
	const devices = places
		.filter(({ kind }) => kind === "Device")
		.map((place) => known.get(keyOf(place)))
		.filter((each): each is Seen => each !== undefined && each !== "absent");
	const drawn = Array.from({ length: Math.floor(random.next() * 3) }, () => {
		return devices[Math.floor(random.next() * devices.length)]?.uid;
	});
	return [...new Set(drawn.filter((uid) => uid !== undefined))];
}
