import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent, WatchListRequest } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { Artist, ArtistV1 } from "../demo.fixture.ts";
import { Violation } from "./linearizability.fixture.ts";
import { pick, type Simulation } from "./simulation.fixture.ts";
import {
	type Commits,
	checkSession,
	isSame,
	type Session,
	View,
	viewOf,
	type WatchQuery,
} from "./watch-check.fixture.ts";

/** A read that a watcher made after an event. */
interface ReadAfterEvent {
	readonly key: string;
	/** The version of the event. */
	readonly after: string;
	readonly resource: Resource | undefined;
}

/** A query, drawn at random, and what its watches have received, one after the other. */
export class WatchedQuery {
	readonly #simulation: Simulation;
	readonly #query: WatchQuery;
	readonly #sessions: Session[] = [];
	readonly #reads: ReadAfterEvent[] = [];
	readonly #view = new View();
	/** How often a new watch had to be started. */
	fellBehind = 0;
	#version = "";
	#afterVersion = "";
	#events: WatchEvent[] = [];
	#brokenOff = false;

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

	/** The next watch begins with a snapshot. */
	forget(): void {
		this.#version = "";
	}

	/** Begins a watch, and returns its request. */
	begin(): WatchQuery & Pick<WatchListRequest, "afterVersion"> {
		this.#afterVersion = this.#version;
		this.#events = [];
		this.#brokenOff = false;
		if (this.#afterVersion === "") {
			this.#view.clear();
		}
		return { ...this.#query, afterVersion: this.#afterVersion };
	}

	/** Takes an event, after which it may read. */
	async receive(event: WatchEvent): Promise<void> {
		this.#events.push(event);
		this.#view.apply(event);
		this.#version = event.version || this.#version;
		await this.#readAfter(event);
	}

	/** The server can't continue the watch. */
	fallBehind(): void {
		this.#version = "";
		this.#brokenOff = true;
		this.fellBehind += 1;
	}

	/** Ends the watch. @param isComplete - whether it was read until no more events could follow. */
	end(isComplete: boolean): void {
		const events = this.#events;
		const afterVersion = this.#afterVersion;
		if (!events.some(({ event }) => event.case === "endOfSnapshot") && afterVersion === "") {
			// A watch can't resume within a snapshot.
			this.#version = "";
		}
		this.#sessions.push({ afterVersion, events, complete: isComplete && !this.#brokenOff });
	}

	/** Checks all that was received. @throws Violation */
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
}

/** Does nothing for a while, as long as chance decides. */
export async function stall({ random, scheduler }: Simulation, share: number): Promise<void> {
	while (random.next() < share) {
		await scheduler.pause();
	}
}
