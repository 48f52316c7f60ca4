import { setTimeout } from "node:timers/promises";
import {
	type Content,
	keyOf,
	type ObservedResource,
	type Outcome,
	type Place,
} from "../history/history.ts";
import { call, noResponse } from "./api.ts";
import { drawContent } from "./draw-content.ts";
import { type JsonObject, objectOf } from "./json.ts";
import { idOf, resourceOf, seenOf } from "./json-resources.ts";
import { deploymentOf, kinds, places } from "./places.ts";
import type { SharedState } from "./shared-state.ts";

let notes = 0;

/** Takes one step after another at places that no other client uses. */
export async function work(shared: SharedState, signal: AbortSignal): Promise<void> {
	while (!signal.aborted) {
		const free = places.filter((place) => !shared.inUse.has(keyOf(place)));
		const place = free[Math.floor(shared.random.next() * free.length)];
		if (place !== undefined) {
			await withExclusive(shared, place, () => act(shared, place));
		}
		await setTimeout(shared.random.next() * 2 * shared.pauseMs);
	}
}

/** Reads unknown resources, creates absent ones, and changes or deletes existing ones. */
async function act(shared: SharedState, place: Place): Promise<void> {
	const known = shared.known.get(keyOf(place));
	const draw = shared.random.next();
	const isInDeletion = known !== "absent" && known?.marked;
	if (known === undefined || draw < (isInDeletion ? 0.6 : 0.15)) {
		await read(shared, place);
	} else if (known === "absent" || draw < 0.65) {
		await write(shared, place, drawContent(shared, place, nextNote()));
	} else if (await remove(shared, place)) {
		if (shared.random.next() < 0.5) {
			await recreate(shared, place);
		}
	}
}

/**
 * Re-creates a name as soon as its resource is deleted, and references the new resource: late effects of the
 * deletion must not affect it.
 */
async function recreate(shared: SharedState, place: Place): Promise<void> {
	const key = keyOf(place);
	for (let left = 20; left > 0 && shared.known.get(key) === undefined; left -= 1) {
		await write(shared, place, drawContent(shared, place, nextNote()));
		await setTimeout(20);
	}
	const referrers = places.flatMap((each) => {
		const [field] =
			Object.entries(kinds[each.kind].fields).find(([, kind]) => kind === place.kind) ?? [];
		return field === undefined || shared.inUse.has(keyOf(each)) ? [] : [{ place: each, field }];
	});
	const referrer = referrers[Math.floor(shared.random.next() * referrers.length)];
	if (referrer !== undefined) {
		await withExclusive(shared, referrer.place, () => {
			const content = drawContent(shared, referrer.place, nextNote());
			const references = { ...content.references, [referrer.field]: key };
			return write(shared, referrer.place, { ...content, references });
		});
	}
}

/** Runs an action while no other client uses the place. */
async function withExclusive(
	shared: SharedState,
	place: Place,
	act: () => Promise<unknown>,
): Promise<void> {
	const key = keyOf(place);
	shared.inUse.add(key);
	try {
		await act();
	} finally {
		shared.inUse.delete(key);
	}
}

function nextNote(): string {
	notes += 1;
	return `note-${notes}`;
}

/** Reads a resource, and records the result. */
export async function read(shared: SharedState, place: Place): Promise<void> {
	const from = performance.now();
	const response = await call(addressOf(shared, place), "Read", { id: idOf(place) });
	const isAbsent = response.kind === "refused" && response.code === "not_found";
	if (response.kind !== "done" && !isAbsent) {
		return;
	}
	const seen = response.kind === "done" ? seenIn(place, response.value) : undefined;
	learn(shared, place, seen ?? "absent");
	const to = performance.now();
	shared.history.push({ call: "read", key: keyOf(place), from, to, seen });
}

/** Creates or replaces a resource, and records the outcome. */
async function write(shared: SharedState, place: Place, content: Content): Promise<void> {
	const from = performance.now();
	const resource = resourceOf(place, content, shared.placeOfUid);
	const pending = call(addressOf(shared, place), "Write", { resource });
	shared.notifier.notify("write");
	const response = await pending;
	if (response.kind === "unsent") {
		return;
	}
	const outcome: Outcome<ObservedResource> =
		response.kind === "done" ? { kind: "done", value: seenIn(place, response.value) } : response;
	if (outcome.kind === "done") {
		learn(shared, place, outcome.value);
	} else {
		shared.known.delete(keyOf(place));
	}
	const to = endOf(outcome);
	shared.history.push({ call: "write", key: keyOf(place), from, to, content, outcome });
}

/** Deletes a resource, and records the outcome. Returns whether it succeeded. */
export async function remove(shared: SharedState, place: Place): Promise<boolean> {
	const from = performance.now();
	const pending = call(addressOf(shared, place), "Delete", { id: idOf(place) });
	shared.notifier.notify("delete");
	const response = await pending;
	if (response.kind === "unsent") {
		return false;
	}
	const outcome: Outcome<boolean> =
		response.kind === "done" ? { kind: "done", value: "version" in response.value } : response;
	shared.known.delete(keyOf(place));
	const to = endOf(outcome);
	shared.history.push({ call: "delete", key: keyOf(place), from, to, outcome });
	return outcome.kind === "done";
}

function addressOf(shared: SharedState, place: Place): string {
	return shared.address(deploymentOf(place));
}

function seenIn(place: Place, response: JsonObject): ObservedResource {
	return seenOf(place, objectOf(response.resource));
}

function learn(shared: SharedState, place: Place, seen: ObservedResource | "absent"): void {
	shared.known.set(keyOf(place), seen);
	if (seen !== "absent") {
		shared.placeOfUid.set(seen.uid, place);
	}
}

function endOf(outcome: Outcome<unknown>): number {
	const mayStillBeDone = outcome.kind === "unknown" && outcome.why === noResponse;
	return mayStillBeDone ? Number.POSITIVE_INFINITY : performance.now();
}
