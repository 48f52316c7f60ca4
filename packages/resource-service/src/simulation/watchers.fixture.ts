import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { NamespaceSchema, type Resource, type WatchEvent } from "@plinth/proto";
import { idOf, Namespace, nameKey, resourceOf } from "@plinth/resource";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import { Artist, ArtistV1, artist } from "../demo.fixture.ts";
import { Violation } from "./linearizability.fixture.ts";
import { pick, type Simulation } from "./simulation.fixture.ts";
import {
	type Acknowledgement,
	Commits,
	checkSession,
	isSame,
	mustWatchAgain,
	type Session,
	View,
	viewOf,
	type WatchQuery,
} from "./watch-check.fixture.ts";

const names = ["a", "ab", "abc", "b", "c"] as const;
const namespaces = ["default", "n"] as const;

/** A read that a watcher made after an event. */
interface ReadAfterEvent {
	readonly key: string;
	/** The version of the event. */
	readonly after: string;
	readonly resource: Resource | undefined;
}

/**
 * Runs writers continuously while watchers start, stall, stop and resume.
 *
 * @returns how often a watcher fell so far behind that it had to start a new watch.
 * @throws Violation if a watcher missed an event, or received one twice, out of order or too early; if its final view
 *   differs from the stored state; or if a read was older than a preceding event.
 */
export async function runWatchers(
	simulation: Simulation,
	{ writers = 3, writesEach = 15, watchers = 3 } = {},
): Promise<number> {
	const { client, scheduler } = simulation;
	await scheduler.run(
		client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, "n"), data: create(NamespaceSchema) }),
		}),
	);
	const responses: Acknowledgement[] = [];
	const crowd = Array.from({ length: watchers }, () => new Watcher(simulation));
	const watching = Promise.all(crowd.map((watcher) => watcher.wander()));
	const write = (times: number) =>
		Promise.all(
			Array.from({ length: writers }, () => writeRepeatedly(simulation, times, responses)),
		);
	await scheduler.run(write(writesEach));
	for (const watcher of crowd) {
		watcher.settleDown();
	}
	await scheduler.run(watching);
	const following = crowd.map((watcher) => watcher.follow());
	// From here on watchers miss nothing: each must be woken for each event.
	await scheduler.run(write(Math.ceil(writesEach / 4)));
	await scheduler.drain();
	for (const watcher of crowd) {
		watcher.stop();
	}
	await scheduler.run(Promise.all(following));
	const commits = new Commits(responses);
	for (const watcher of crowd) {
		watcher.check(commits);
		await scheduler.run(watcher.compareWithStore());
	}
	return crowd.reduce((sum, { fellBehind }) => sum + fellBehind, 0);
}

async function writeRepeatedly(
	{ client, random }: Simulation,
	times: number,
	responses: Acknowledgement[],
): Promise<void> {
	for (let count = 0; count < times; count += 1) {
		const name = pick(random, names);
		const tenancy = { namespace: pick(random, namespaces) };
		const key = nameKey(idOf(Artist, name, tenancy));
		const drawn = random.next();
		try {
			if (drawn < 0.3) {
				const type = drawn < 0.2 ? Artist : ArtistV1;
				const { version } = await client.delete({ id: idOf(type, name, tenancy) });
				if (version !== "") {
					responses.push({ key, version, resource: undefined });
				}
			} else {
				const written = drawn < 0.8 ? artist(name, tenancy) : artistV1(name, tenancy);
				const { resource } = await client.write({ resource: written });
				responses.push({ key, version: resource?.version ?? "", resource });
			}
		} catch (error) {
			// Deleted by another group version than it is stored under, or repeated conflicts.
			if (
				!(error instanceof ConnectError) ||
				(error.code !== Code.InvalidArgument && error.code !== Code.Aborted)
			) {
				throw error;
			}
		}
	}
}

function artistV1(name: string, tenancy: { readonly namespace: string }): Resource {
	return resourceOf(ArtistV1, {
		id: idOf(ArtistV1, name, tenancy),
		data: create(ArtistV1Schema, { name }),
	});
}

/** One watcher: keeps a view up to date across its streams. */
class Watcher {
	readonly #simulation: Simulation;
	readonly #query: WatchQuery;
	readonly #sessions: Session[] = [];
	readonly #reads: ReadAfterEvent[] = [];
	readonly #view = new View();
	readonly #end = new AbortController();
	/** How often it had to start a new watch. */
	fellBehind = 0;
	#version = "";
	#wandering = true;
	#stream = new AbortController();

	constructor(simulation: Simulation) {
		const { random } = simulation;
		this.#simulation = simulation;
		const tenancy = pick(random, [
			undefined,
			{},
			{ partition: "*", namespace: "*" },
			{ partition: "*", namespace: "n" },
			{ namespace: "*" },
			{ namespace: "n" },
		]);
		this.#query = {
			type: pick(random, [Artist.type, Artist.type, ArtistV1.type]),
			namePrefix: pick(random, ["", "", "a", "ab", "abc"]),
			bookmarks: random.next() < 0.3,
			...(tenancy && { tenancy }),
		};
	}

	/** Starts, stalls, stops and resumes at random until it is stopped. */
	async wander(): Promise<void> {
		const { random } = this.#simulation;
		while (this.#wandering) {
			if (random.next() < 0.2) {
				this.#version = "";
			}
			this.#stream = new AbortController();
			await this.#watch(this.#stream, Math.floor(random.next() * 12));
			await this.#stall(0.6);
		}
	}

	/** Ends `wander`, and its stream where it is. */
	settleDown(): void {
		this.#wandering = false;
		this.#stream.abort();
	}

	/** Watches until it is stopped. */
	async follow(): Promise<void> {
		while (!this.#end.signal.aborted) {
			await this.#watch(this.#end, Number.POSITIVE_INFINITY);
		}
	}

	/** Ends `follow` when no more events can follow. */
	stop(): void {
		this.#end.abort();
	}

	/** Checks all that it saw. @throws Violation */
	check(commits: Commits): void {
		for (const session of this.#sessions) {
			checkSession(commits, viewOf(this.#query), session);
		}
		for (const { key, after, resource } of this.#reads) {
			const states = commits.statesFrom(key, Number(after));
			if (!states.some((state) => isSame(state, resource))) {
				throw new Violation(
					`a read of ${key} after event ${after} returned version ${resource?.version}`,
				);
			}
		}
	}

	/** Compares the view with a list. @throws Violation */
	async compareWithStore(): Promise<void> {
		const { type, tenancy = { partition: "*", namespace: "*" }, namePrefix } = this.#query;
		const { resources } = await this.#simulation.client.list({ type, tenancy, namePrefix });
		this.#view.checkEquals(resources);
	}

	/** One stream, for a number of events. */
	async #watch(end: AbortController, count: number): Promise<void> {
		const afterVersion = this.#version;
		const events: WatchEvent[] = [];
		let brokenOff = false;
		if (afterVersion === "") {
			this.#view.clear();
		}
		try {
			const request = { ...this.#query, afterVersion };
			for await (const event of this.#simulation.client.watchList(request, {
				signal: end.signal,
			})) {
				events.push(event);
				this.#view.apply(event);
				this.#version = event.version || this.#version;
				await this.#readAfter(event);
				if (events.length >= count) {
					break;
				}
				await this.#stall(0.3);
			}
		} catch (error) {
			if (mustWatchAgain(error)) {
				this.#version = "";
				brokenOff = true;
				this.fellBehind += 1;
			} else if (!end.signal.aborted) {
				throw error;
			}
		}
		if (!events.some(({ event }) => event.case === "endOfSnapshot") && afterVersion === "") {
			// A watch can't resume within a snapshot.
			this.#version = "";
		}
		this.#sessions.push({ afterVersion, events, complete: end === this.#end && !brokenOff });
	}

	async #readAfter({ event, version }: WatchEvent): Promise<void> {
		const { client, random } = this.#simulation;
		const id =
			event.case === "upsert" || event.case === "delete" ? event.value.resource?.id : undefined;
		if (id === undefined || version === "" || random.next() > 0.3) {
			return;
		}
		const key = nameKey(id);
		try {
			const { resource } = await client.read({ id: { ...id, uid: "" } });
			this.#reads.push({ key, after: version, resource });
		} catch (error) {
			if (error instanceof ConnectError && error.code === Code.NotFound) {
				this.#reads.push({ key, after: version, resource: undefined });
			} else if (!(error instanceof ConnectError && error.code === Code.InvalidArgument)) {
				throw error;
			}
		}
	}

	async #stall(share: number): Promise<void> {
		while (this.#simulation.random.next() < share) {
			await this.#simulation.scheduler.pause();
		}
	}
}
