import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchSetEvent } from "@plinth/proto";
import { Violation } from "./linearizability.fixture.ts";
import type { Simulation } from "./simulation.fixture.ts";
import { type Commits, mustWatchAgain } from "./watch-check.fixture.ts";
import { stall, WatchedQuery } from "./watched-query.fixture.ts";
import type { Wanderer } from "./watchers.fixture.ts";

/** The id of a watch in each set that the server refuses. */
const refusedId = "refused";

/**
 * A watcher of several queries in one stream. While it wanders, each stream has some of them. Whenever it follows and a
 * watch has ended, it opens another stream, in which the others resume.
 */
export class SetWatcher implements Wanderer {
	readonly #simulation: Simulation;
	readonly #watched: readonly WatchedQuery[];
	readonly #end = new AbortController();
	#wandering = true;
	#stream = new AbortController();
	#violation: Violation | undefined;

	constructor(simulation: Simulation) {
		this.#simulation = simulation;
		this.#watched = Array.from({ length: 5 }, () => new WatchedQuery(simulation));
	}

	get fellBehind(): number {
		return this.#watched.reduce((sum, { fellBehind }) => sum + fellBehind, 0);
	}

	async wander(): Promise<void> {
		const { random } = this.#simulation;
		while (this.#wandering) {
			const watched = this.#watched.filter(() => random.next() < 0.7);
			for (const each of watched) {
				if (random.next() < 0.2) {
					each.forget();
				}
			}
			this.#stream = new AbortController();
			await this.#watch(watched, this.#stream, Math.floor(random.next() * 40));
			await stall(this.#simulation, 0.6);
		}
	}

	settleDown(): void {
		this.#wandering = false;
		this.#stream.abort();
	}

	async follow(): Promise<void> {
		while (!this.#end.signal.aborted) {
			await this.#watch(this.#watched, this.#end, Number.POSITIVE_INFINITY);
		}
	}

	stop(): void {
		this.#end.abort();
	}

	check(commits: Commits): void {
		if (this.#violation !== undefined) {
			throw this.#violation;
		}
		for (const each of this.#watched) {
			each.check(commits);
		}
	}

	async compareWithStore(): Promise<void> {
		for (const each of this.#watched) {
			await each.compareWithStore();
		}
	}

	/** One stream, for a number of messages. */
	async #watch(
		watched: readonly WatchedQuery[],
		end: AbortController,
		count: number,
	): Promise<void> {
		const { client } = this.#simulation;
		const watches = watched.map((each, index) => ({ id: `${index}`, request: each.begin() }));
		const unknown = { group: "demo", groupVersion: "v9", kind: "Nope" };
		const refused = { id: refusedId, request: { type: unknown } };
		let received = 0;
		let isComplete = end === this.#end;
		try {
			for await (const message of client.watchSet(
				{ watches: [refused, ...watches] },
				{ signal: end.signal },
			)) {
				const hasEnded = await this.#receive(watched, message);
				received += 1;
				if (received >= count || (hasEnded && end === this.#end)) {
					isComplete = false;
					break;
				}
				await stall(this.#simulation, 0.1);
			}
		} catch (error) {
			if (!end.signal.aborted) {
				throw error;
			}
		}
		for (const each of watched) {
			each.end(isComplete);
		}
	}

	/** @returns whether a watch has ended that has to be opened again. */
	async #receive(
		watched: readonly WatchedQuery[],
		{ watchId, content }: WatchSetEvent,
	): Promise<boolean> {
		if (content.case === "end") {
			const { code, message } = content.value;
			if (watchId === refusedId && code === Code.InvalidArgument) {
				return false;
			}
			if (!mustWatchAgain(new ConnectError(message, code))) {
				this.#violation ??= new Violation(`watch ${watchId} ended: ${Code[code]}: ${message}`);
			}
			watched[Number(watchId)]?.fallBehind();
			return true;
		}
		const query = watched[Number(watchId)];
		if (query === undefined || content.value === undefined) {
			this.#violation ??= new Violation(`a message for watch ${watchId}, which is not in the set`);
			return false;
		}
		await query.receive(content.value);
		return false;
	}
}
