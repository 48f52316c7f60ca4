import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ID, type Resource, StatusSchema, type WatchEvent } from "@plinth/proto";
import {
	decode,
	deletionTimestampKey,
	finalizersKey,
	idOf,
	newUlid,
	Tombstone,
} from "@plinth/resource";
import { Artist, artist } from "../demo.fixture.ts";
import { type Operation, type SeenEvent, Violation } from "./linearizability.fixture.ts";
import { type Call, type Outcome, type State, stateOf } from "./rules.fixture.ts";
import { pick, type Simulation } from "./simulation.fixture.ts";

const names = ["a", "b", "c"] as const;
const genres = ["jazz", "funk", "rock"] as const;
const finalizers = ["x", "y", "x y", ""] as const;
const keys = ["one", "two"] as const;
const time = "2026-01-01T00:00:00Z";

/** The responses of all calls, and the events of two watches of everything. */
export interface ArtistHistory {
	readonly operations: readonly Operation[];
	readonly events: readonly SeenEvent[];
}

/**
 * Runs concurrent callers on a few artists: writers with and without a version, status writers, deleters, removers
 * of finalizers, and readers. With `hot`, almost all calls are for one artist.
 *
 * @throws Violation if the two watches differ, or a deletion has no tombstone.
 */
export async function recordHistory(
	simulation: Simulation,
	{ callers = 5, callsEach = 10, hot = simulation.random.next() < 0.3 } = {},
): Promise<ArtistHistory> {
	const { scheduler } = simulation;
	const end = new AbortController();
	const operations: Operation[] = [];
	const seen: SeenEvent[] = [];
	const seenAgain: SeenEvent[] = [];
	const tombstones = new Map<string, string>();
	const watches = [
		watchArtists(simulation, end.signal, seen),
		watchArtists(simulation, end.signal, seenAgain),
		watchTombstones(simulation, end.signal, tombstones),
	];
	await scheduler.run(Promise.all(watches.map((watch) => watch.begun)));
	await scheduler.run(
		Promise.all(
			Array.from({ length: callers }, () => callRepeatedly(simulation, callsEach, hot, operations)),
		),
	);
	await scheduler.drain();
	end.abort();
	await scheduler.run(Promise.all(watches.map((watch) => watch.ended)));
	if (JSON.stringify(seen) !== JSON.stringify(seenAgain)) {
		throw new Violation("two watches of the same saw different events");
	}
	const deletions = seen.filter((event) => event.kind === "delete");
	for (const { version, state } of deletions) {
		if (tombstones.get(version) !== state.uid) {
			throw new Violation(`deletion ${version} without its tombstone`);
		}
	}
	if (tombstones.size !== deletions.length) {
		throw new Violation(`${tombstones.size} tombstones of ${deletions.length} deletions`);
	}
	return { operations, events: seen };
}

interface RunningWatch {
	/** Settles when the snapshot has ended. */
	readonly begun: Promise<void>;
	readonly ended: Promise<void>;
}

function watch(
	{ client }: Simulation,
	type: typeof Artist.type,
	signal: AbortSignal,
	see: (event: WatchEvent) => void,
): RunningWatch {
	const begun = Promise.withResolvers<void>();
	const ended = (async () => {
		try {
			for await (const event of client.watchList({ type }, { signal })) {
				if (event.event.case === "endOfSnapshot") {
					begun.resolve();
				} else {
					see(event);
				}
			}
		} catch (error) {
			if (!signal.aborted) {
				begun.reject(error);
				throw error;
			}
		}
	})();
	return { begun: begun.promise, ended };
}

function watchArtists(simulation: Simulation, signal: AbortSignal, seen: SeenEvent[]) {
	return watch(simulation, Artist.type, signal, ({ event, version }) => {
		if (event.case === "upsert" || event.case === "delete") {
			const { resource } = event.value;
			const name = resource?.id?.name ?? "";
			seen.push({ name, version, kind: event.case, state: stateOf(resource) });
		}
	});
}

function watchTombstones(
	simulation: Simulation,
	signal: AbortSignal,
	uidsByVersion: Map<string, string>,
) {
	return watch(simulation, Tombstone.type, signal, ({ event, version }) => {
		if (event.case === "upsert" && event.value.resource !== undefined) {
			const { data } = decode(Tombstone, event.value.resource);
			uidsByVersion.set(version, data.owner?.uid ?? "");
		}
	});
}

async function callRepeatedly(
	simulation: Simulation,
	times: number,
	hot: boolean,
	operations: Operation[],
): Promise<void> {
	const { random, scheduler } = simulation;
	/** The last state of each artist that this caller has read. */
	const known = new Map<string, State>();
	for (let count = 0; count < times; count += 1) {
		while (random.next() < (hot ? 0.05 : 0.3)) {
			await scheduler.pause();
		}
		if (random.next() < 0.1) {
			await list(simulation, operations);
			continue;
		}
		const name = hot && random.next() < 0.9 ? names[0] : pick(random, names);
		const call = drawCall(simulation, known.get(name));
		const made = simulation.tick();
		const outcome = await captureOutcome(simulation, () => perform(simulation, name, call));
		operations.push({ name, call, outcome, made, returned: simulation.tick() });
		if (outcome.kind === "resource") {
			known.set(name, outcome.state);
		}
	}
}

function drawCall({ random, clock }: Simulation, known: State | undefined): Call {
	const maybe = (value: string | undefined) => (random.next() < 0.4 ? (value ?? "") : "");
	const version = maybe(known?.version);
	const uid = maybe(known?.uid);
	const drawn = random.next();
	if (drawn < 0.3 || (known === undefined && drawn < 0.5)) {
		return { kind: "read", uid };
	}
	if (drawn < 0.45) {
		return { kind: "delete", uid, version };
	}
	if (drawn < 0.6 && known !== undefined) {
		const observedGeneration = newUlid({ random, clock });
		const key = pick(random, keys);
		return { kind: "write-status", uid: known.uid, version, key, observedGeneration };
	}
	if (known?.mark !== undefined && drawn < 0.9) {
		// As a controller releases a resource: everything as last read, with one finalizer less.
		const left = (known.finalizers ?? "").split(" ").slice(1).join(" ");
		const { genre, mark } = known;
		return { kind: "write", uid, version, genre, finalizers: left, mark };
	}
	return {
		kind: "write",
		uid,
		version,
		genre: random.next() < 0.5 ? (known?.genre ?? "jazz") : pick(random, genres),
		finalizers:
			random.next() < 0.4
				? pick(random, finalizers)
				: version === ""
					? undefined
					: known?.finalizers,
		mark: random.next() < 0.15 ? time : version === "" ? undefined : known?.mark,
	};
}

async function perform(simulation: Simulation, name: string, call: Call): Promise<Outcome> {
	const { client, random } = simulation;
	switch (call.kind) {
		case "read": {
			const headers = random.next() < 0.5 ? { "x-plinth-consistency-mode": "consistent" } : {};
			const { resource } = await client.read({ id: idWith(name, call.uid) }, { headers });
			return { kind: "resource", state: stateOf(resource) };
		}
		case "write": {
			const { resource } = await client.write({ resource: resourceFor(name, call) });
			return { kind: "resource", state: stateOf(resource) };
		}
		case "write-status": {
			const { observedGeneration, key, version, uid } = call;
			const status = create(StatusSchema, { observedGeneration });
			const request = { id: idWith(name, uid), version, key, status };
			const { resource } = await client.writeStatus(request);
			return { kind: "resource", state: stateOf(resource) };
		}
		case "delete": {
			const { uid, version } = call;
			const response = await client.delete({ id: idWith(name, uid), version });
			return { kind: "done", version: response.version };
		}
		case "listed":
			throw new Error("a list is about all artists");
	}
}

/** A list reports the state of every artist at one version. */
async function list(simulation: Simulation, operations: Operation[]): Promise<void> {
	const made = simulation.tick();
	const response = await simulation.client.list({ type: Artist.type, tenancy: {} });
	const returned = simulation.tick();
	const call = { kind: "listed", version: response.version } as const;
	for (const name of names) {
		const resource = response.resources.find(({ id }) => id?.name === name);
		const outcome: Outcome =
			resource === undefined
				? { kind: "not-listed" }
				: { kind: "resource", state: stateOf(resource) };
		operations.push({ name, call, outcome, made, returned });
	}
}

async function captureOutcome(
	{ faults }: Simulation,
	perform: () => Promise<Outcome>,
): Promise<Outcome> {
	try {
		return await perform();
	} catch (error) {
		if (error instanceof ConnectError && error.code !== Code.Internal) {
			return { kind: "refused", code: error.code, message: withoutVersions(error.rawMessage) };
		}
		throw faults[0] ?? error;
	}
}

/** A message without the versions in it: the stored one may be from an eventually consistent read. */
function withoutVersions(message: string): string {
	return message.replace(/: given "\d+", (stored "\d+"|nothing is stored)$/, "");
}

function idWith(name: string, uid: string): ID {
	return { ...idOf(Artist, name), uid };
}

function resourceFor(name: string, call: Extract<Call, { kind: "write" }>): Resource {
	const resource = artist(name, {}, call.genre);
	const metadata: Record<string, string> = {};
	if (call.finalizers !== undefined) {
		metadata[finalizersKey] = call.finalizers;
	}
	if (call.mark !== undefined) {
		metadata[deletionTimestampKey] = call.mark;
	}
	return { ...resource, id: idWith(name, call.uid), version: call.version, metadata };
}
