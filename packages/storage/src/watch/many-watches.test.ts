import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { type Random, type Runtime, sleep } from "@plinth/runtime";
import { SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import { defaultStorageLimits } from "../limits.ts";
import { type ListQuery, matches } from "../query.ts";
import { StateStore } from "../state-store/state-store.ts";
import { WatchDeliveries } from "./watch-deliveries.ts";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
const names = ["a", "ab", "abc", "b", "ba"] as const;
const units = ["p", "q"] as const;
const bookmarkIntervalMs = 5;

/** One event of the history: which revision wrote which resource. */
interface Written {
	readonly revision: number;
	readonly resource: Resource;
}

/** A store, writers of it and watches, whose order the seed determines. */
class Simulation {
	readonly scheduler: SeededScheduler;
	readonly random: Random;
	readonly store: StateStore;
	readonly history: Written[] = [];
	readonly end = new AbortController();
	/** Everything has been written: watches stay, and must receive all of it. */
	isOver = false;
	violations: string[] = [];
	fellBehind = 0;

	constructor(seed: number, logEvents: number, deliveries: Deliveries) {
		this.scheduler = new SeededScheduler({ seed });
		this.random = seededRandom(seed);
		const { scheduler, random } = this;
		const runtime = { clock: scheduler.clock, random, scheduler };
		const limits = { ...defaultStorageLimits, logEvents };
		this.store = new StateStore(runtime, limits, deliveries(runtime));
	}

	pick<T>(choices: readonly [T, ...T[]]): T {
		return choices[Math.floor(this.random.next() * choices.length)] ?? choices[0];
	}

	/** Sometimes other tasks run first, sometimes bookmarks come due. */
	async pause(): Promise<void> {
		const drawn = this.random.next();
		if (drawn < 0.3) {
			await this.scheduler.pause();
		} else if (drawn < 0.5) {
			await sleep(this.scheduler.clock, drawn * 20);
		}
	}

	async write(revisions: number): Promise<void> {
		for (let count = 0; count < revisions; count++) {
			const revision = this.store.revision + 1;
			const written = new Set(Array.from({ length: 3 }, () => this.pick(names)));
			const resources = [...written].map((name) => {
				const tenancy = { partition: this.pick(units), namespace: this.pick(units) };
				return create(ResourceSchema, { id: { name, type, tenancy }, version: `${revision}` });
			});
			this.store.apply(
				revision,
				resources.map((resource) => ({ op: "put", resource })),
			);
			this.history.push(...resources.map((resource) => ({ revision, resource })));
			await this.pause();
		}
	}

	/** Watches, leaves and watches again, until everything has been written; then it stays. */
	async watch(): Promise<void> {
		const unit = ["p", "q", "*"] as const;
		const query: ListQuery = {
			type,
			tenancy: { partition: this.pick(unit), namespace: this.pick(unit) },
			namePrefix: this.pick(["", "a", "ab", "abc", "b", "c"]),
		};
		for (let after: string | undefined; ; ) {
			const reached = await this.#session(query, after);
			if (this.end.signal.aborted) {
				return;
			}
			after = this.random.next() < 0.5 ? reached : undefined;
		}
	}

	/** One watch: checks each event against the history, and returns the version that it has reached. */
	async #session(query: ListQuery, after: string | undefined): Promise<string | undefined> {
		const events = this.store.watch(
			query,
			{
				signal: this.end.signal,
				...(this.random.next() < 0.5 && { bookmarkIntervalMs }),
				...(after !== undefined && { afterVersion: after }),
			},
			async () => {},
		);
		let reached = after;
		let expected = after === undefined ? undefined : this.#after(query, after);
		try {
			for await (const event of events) {
				if (event.kind === "end-of-snapshot") {
					expected = this.#after(query, event.version);
				} else if (event.kind === "bookmark") {
					const due = expected?.next();
					if (due !== undefined && due.revision <= Number(event.version)) {
						this.violations.push(`bookmark ${event.version} before event ${due.revision}`);
					}
				} else if (expected !== undefined && expected.take()?.resource !== event.resource) {
					this.violations.push(
						`${event.resource.id?.name} of ${event.resource.version} is not due`,
					);
				}
				reached = event.version ?? reached;
				await this.pause();
				if (!this.isOver && this.random.next() < 0.1) {
					break;
				}
			}
		} catch (error) {
			if (this.end.signal.aborted) {
				const due = expected === undefined ? "end of the snapshot" : expected.next()?.revision;
				this.violations.push(...(due === undefined ? [] : [`event ${due} is missing`]));
				return undefined;
			}
			if (!(error instanceof WatchClosed || error instanceof VersionCompacted)) {
				throw error;
			}
			this.fellBehind += 1;
			return undefined;
		}
		return expected === undefined ? undefined : reached;
	}

	/** The events that a watch of the query sends after a version. */
	#after(query: ListQuery, version: string) {
		const { history } = this;
		let at = history.findIndex(({ revision }) => revision > Number(version));
		at = at === -1 ? history.length : at;
		const next = () => {
			let due = history[at];
			while (due !== undefined && !matches(query, due.resource)) {
				at += 1;
				due = history[at];
			}
			return due;
		};
		const take = () => {
			const due = next();
			at += 1;
			return due;
		};
		return { next, take };
	}
}

type Deliveries = (runtime: Runtime) => Pick<WatchDeliveries, "add">;

interface Options {
	readonly logEvents?: number;
	readonly deliveries?: Deliveries;
}

const watches = 12;

async function simulate(
	seed: number,
	{
		logEvents = 1_000,
		deliveries = (runtime) => new WatchDeliveries(runtime, { perIteration: 1 + (seed % 3) }),
	}: Options = {},
): Promise<Simulation> {
	const simulation = new Simulation(seed, logEvents, deliveries);
	const { scheduler } = simulation;
	const watching = Promise.all(Array.from({ length: watches }, () => simulation.watch()));
	await scheduler.run(simulation.write(40));
	simulation.isOver = true;
	await scheduler.advance(1_000);
	simulation.end.abort();
	await scheduler.run(watching);
	return simulation;
}

const seeds = 25;

describe("many watches of overlapping queries", () => {
	it("each receive the events that concern them, in order, once and with bookmarks in between", async () => {
		for (let seed = 1; seed <= seeds; seed++) {
			const { violations, fellBehind } = await simulate(seed);
			expect({ seed, violations, fellBehind }).toEqual({ seed, violations: [], fellBehind: 0 });
		}
	});

	it("do so with short logs, unless they fall behind", async () => {
		let fellBehind = 0;
		for (let seed = 1; seed <= seeds; seed++) {
			const simulation = await simulate(seed, { logEvents: 1 + (seed % 10) });
			expect({ seed, violations: simulation.violations }).toEqual({ seed, violations: [] });
			fellBehind += simulation.fellBehind;
		}
		expect(fellBehind).toBeGreaterThan(0);
	});

	it("would be caught sleeping through an event", async () => {
		const forgetful: Deliveries = (runtime) => {
			const deliveries = new WatchDeliveries(runtime);
			return {
				add(delivery) {
					if (runtime.random.next() > 0.02) {
						deliveries.add(delivery);
					}
				},
			};
		};
		let found: string | undefined;
		for (let seed = 1; seed <= seeds && found === undefined; seed++) {
			const { violations } = await simulate(seed, { deliveries: forgetful });
			found = violations[0];
		}
		expect(found).toBeDefined();
	});
});
