import { setTimeout } from "node:timers/promises";
import { type Content, keyOf, type Outcome, type Place, type Seen } from "../history/history.ts";
import { call, noAnswer } from "./api.ts";
import { drawContent } from "./draw-content.ts";
import { type JsonObject, objectOf } from "./json.ts";
import { deploymentOf, kinds, places } from "./places.ts";
import { idOf, resourceOf, seenOf } from "./wire.ts";
import type { World } from "./world.ts";

let notes = 0;

/** Does one thing after the other at places that nobody else is busy with. */
export async function work(world: World, signal: AbortSignal): Promise<void> {
	while (!signal.aborted) {
		const free = places.filter((place) => !world.busy.has(keyOf(place)));
		const place = free[Math.floor(world.random.next() * free.length)];
		if (place !== undefined) {
			await alone(world, place, () => act(world, place));
		}
		await setTimeout(world.random.next() * 2 * world.pauseMs);
	}
}

/** What is not known is looked at; what is absent is created; what is there is changed or deleted. */
async function act(world: World, place: Place): Promise<void> {
	const known = world.known.get(keyOf(place));
	const draw = world.random.next();
	const isGoing = known !== "absent" && known?.marked;
	if (known === undefined || draw < (isGoing ? 0.6 : 0.15)) {
		await look(world, place);
	} else if (known === "absent" || draw < 0.65) {
		await write(world, place, drawContent(world, place, nextNote()));
	} else if (await remove(world, place)) {
		if (world.random.next() < 0.5) {
			await takeAnew(world, place);
		}
	}
}

/**
 * Takes a name as soon as what had it is gone, and references the new one: whoever acts on the old one still
 * must not touch what belongs to the new one.
 */
async function takeAnew(world: World, place: Place): Promise<void> {
	const key = keyOf(place);
	for (let left = 20; left > 0 && world.known.get(key) === undefined; left -= 1) {
		await write(world, place, drawContent(world, place, nextNote()));
		await setTimeout(20);
	}
	const referrers = places.flatMap((each) => {
		const [field] =
			Object.entries(kinds[each.kind].fields).find(([, kind]) => kind === place.kind) ?? [];
		return field === undefined || world.busy.has(keyOf(each)) ? [] : [{ place: each, field }];
	});
	const referrer = referrers[Math.floor(world.random.next() * referrers.length)];
	if (referrer !== undefined) {
		await alone(world, referrer.place, () => {
			const content = drawContent(world, referrer.place, nextNote());
			const references = { ...content.references, [referrer.field]: key };
			return write(world, referrer.place, { ...content, references });
		});
	}
}

/** Nobody else calls to that place meanwhile. */
async function alone(world: World, place: Place, act: () => Promise<unknown>): Promise<void> {
	const key = keyOf(place);
	world.busy.add(key);
	try {
		await act();
	} finally {
		world.busy.delete(key);
	}
}

function nextNote(): string {
	notes += 1;
	return `note-${notes}`;
}

/** Reads a resource, and notes what it is. */
export async function look(world: World, place: Place): Promise<void> {
	const from = performance.now();
	const answer = await call(addressOf(world, place), "Read", { id: idOf(place) });
	const isAbsent = answer.kind === "refused" && answer.code === "not_found";
	if (answer.kind !== "done" && !isAbsent) {
		return;
	}
	const seen = answer.kind === "done" ? seenIn(place, answer.value) : undefined;
	learn(world, place, seen ?? "absent");
	const to = performance.now();
	world.history.push({ call: "look", key: keyOf(place), from, to, seen });
}

/** Creates or replaces a resource, and notes what came of it. */
async function write(world: World, place: Place, content: Content): Promise<void> {
	const from = performance.now();
	const resource = resourceOf(place, content, world.whereabouts);
	const answering = call(addressOf(world, place), "Write", { resource });
	world.moments.has("write");
	const answer = await answering;
	if (answer.kind === "unsent") {
		return;
	}
	const outcome: Outcome<Seen> =
		answer.kind === "done" ? { kind: "done", value: seenIn(place, answer.value) } : answer;
	if (outcome.kind === "done") {
		learn(world, place, outcome.value);
	} else {
		world.known.delete(keyOf(place));
	}
	const to = endOf(outcome);
	world.history.push({ call: "write", key: keyOf(place), from, to, content, outcome });
}

/** Deletes a resource, and notes what came of it. Answers whether that was done. */
export async function remove(world: World, place: Place): Promise<boolean> {
	const from = performance.now();
	const answering = call(addressOf(world, place), "Delete", { id: idOf(place) });
	world.moments.has("delete");
	const answer = await answering;
	if (answer.kind === "unsent") {
		return false;
	}
	const outcome: Outcome<boolean> =
		answer.kind === "done" ? { kind: "done", value: "version" in answer.value } : answer;
	world.known.delete(keyOf(place));
	const to = endOf(outcome);
	world.history.push({ call: "delete", key: keyOf(place), from, to, outcome });
	return outcome.kind === "done";
}

function addressOf(world: World, place: Place): string {
	return world.address(deploymentOf(place));
}

function seenIn(place: Place, answer: JsonObject): Seen {
	return seenOf(place, objectOf(answer.resource));
}

function learn(world: World, place: Place, seen: Seen | "absent"): void {
	world.known.set(keyOf(place), seen);
	if (seen !== "absent") {
		world.whereabouts.set(seen.uid, place);
	}
}

function endOf(outcome: Outcome<unknown>): number {
	const mayStillBeDone = outcome.kind === "unknown" && outcome.why === noAnswer;
	return mayStillBeDone ? Number.POSITIVE_INFINITY : performance.now();
}
