import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { NamespaceSchema, type Resource } from "@plinth/proto";
import { idOf, Namespace, nameKey, resourceOf } from "@plinth/resource";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import { Artist, ArtistV1, artist } from "../demo.fixture.ts";
import { pick, type Simulation } from "./simulation.fixture.ts";
import { type Acknowledgement, Commits, mustWatchAgain } from "./watch-check.fixture.ts";
import { stall, WatchedQuery } from "./watched-query.fixture.ts";

const names = ["a", "ab", "abc", "b", "c"] as const;
const namespaces = ["default", "n"] as const;

/** A watcher that the run drives. */
export interface Wanderer {
	/** How often it had to start a new watch. */
	readonly fellBehind: number;
	/** Starts, stalls, stops and resumes at random until `settleDown`. */
	wander(): Promise<void>;
	/** Ends `wander`, and its stream where it is. */
	settleDown(): void;
	/** Watches until `stop`. */
	follow(): Promise<void>;
	/** Ends `follow` when no more events can follow. */
	stop(): void;
	/** Checks all that it saw. @throws Violation */
	check(commits: Commits): void;
	/** Compares what it knows with what is stored. @throws Violation */
	compareWithStore(): Promise<void>;
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
	createWatcher: (simulation: Simulation) => Wanderer = (each) => new Watcher(each),
): Promise<number> {
	const { client, scheduler } = simulation;
	await scheduler.run(
		client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, "n"), data: create(NamespaceSchema) }),
		}),
	);
	const responses: Acknowledgement[] = [];
	const crowd = Array.from({ length: watchers }, () => createWatcher(simulation));
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
class Watcher implements Wanderer {
	readonly #simulation: Simulation;
	readonly #watched: WatchedQuery;
	readonly #end = new AbortController();
	#wandering = true;
	#stream = new AbortController();

	constructor(simulation: Simulation) {
		this.#simulation = simulation;
		this.#watched = new WatchedQuery(simulation);
	}

	get fellBehind(): number {
		return this.#watched.fellBehind;
	}

	async wander(): Promise<void> {
		const { random } = this.#simulation;
		while (this.#wandering) {
			if (random.next() < 0.2) {
				this.#watched.forget();
			}
			this.#stream = new AbortController();
			await this.#watch(this.#stream, Math.floor(random.next() * 12));
			await stall(this.#simulation, 0.6);
		}
	}

	settleDown(): void {
		this.#wandering = false;
		this.#stream.abort();
	}

	async follow(): Promise<void> {
		while (!this.#end.signal.aborted) {
			await this.#watch(this.#end, Number.POSITIVE_INFINITY);
		}
	}

	stop(): void {
		this.#end.abort();
	}

	check(commits: Commits): void {
		this.#watched.check(commits);
	}

	compareWithStore(): Promise<void> {
		return this.#watched.compareWithStore();
	}

	/** One stream, for a number of events. */
	async #watch(end: AbortController, count: number): Promise<void> {
		const { client } = this.#simulation;
		const watched = this.#watched;
		const request = watched.begin();
		let received = 0;
		try {
			for await (const event of client.watchList(request, { signal: end.signal })) {
				await watched.receive(event);
				received += 1;
				if (received >= count) {
					break;
				}
				await stall(this.#simulation, 0.3);
			}
		} catch (error) {
			if (mustWatchAgain(error)) {
				watched.fallBehind();
			} else if (!end.signal.aborted) {
				throw error;
			}
		}
		watched.end(end === this.#end);
	}
}
