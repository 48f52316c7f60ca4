/**
 * From a watch event to the end of a reconcile: through the in-process transport, the cache, the
 * queue and a reconciler that reads its resource from the cache, with 1, 10 and 50 controllers on
 * one type. The lower bound, measured in the same run: an EventEmitter whose listeners keep a Map
 * and call an async function. Then: time and heap of priming, and how long the reconciles of another
 * controller take meanwhile, from event to end.
 */
import { EventEmitter, setMaxListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
	ComparisonTable,
	format,
	heapUsed,
	interleave,
	numberOption,
	printTable,
	quantile,
	type Row,
	unlessQuick,
} from "@plinth/bench";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService, type WatchEvent, WatchEventSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { Artist, demo } from "../src/demo-types.fixture.ts";
import { createControllerManager, defineController } from "../src/index.ts";

setMaxListeners(0);

/** A watch that any number of clients follow: a snapshot, then whatever is announced. */
class Source {
	readonly snapshot: Resource[];
	readonly #log: WatchEvent[] = [];
	#wake = Promise.withResolvers<void>();

	constructor(snapshot: Resource[]) {
		this.snapshot = snapshot;
	}

	announce(resource: Resource, version: number): void {
		const event = { case: "upsert" as const, value: { resource } };
		this.#log.push(create(WatchEventSchema, { event, version: `${version}` }));
		this.#wake.resolve();
		this.#wake = Promise.withResolvers();
	}

	client() {
		const source = this;
		const transport = createInProcessTransport((router) =>
			router.service(ResourceService, {
				async *watchList({ afterVersion }, { signal }) {
					if (afterVersion === "") {
						for (const resource of source.snapshot) {
							yield {
								$typeName: "plinth.resource.v1.WatchEvent",
								version: "",
								event: {
									case: "upsert",
									value: { $typeName: "plinth.resource.v1.WatchEvent.Upsert", resource },
								},
							};
						}
						const event = { case: "endOfSnapshot" as const, value: {} };
						yield create(WatchEventSchema, { event, version: "1" });
					}
					const ended = new Promise<void>((resolve) =>
						signal.addEventListener("abort", () => resolve(), { once: true }),
					);
					for (let at = 0; !signal.aborted; ) {
						for (; at < source.#log.length; at++) {
							const event = source.#log[at];
							if (event !== undefined) {
								yield event;
							}
						}
						await Promise.race([source.#wake.promise, ended]);
					}
				},
			}),
		);
		return createClient(ResourceService, transport);
	}
}

function resources(count: number, version: number): Resource[] {
	return Array.from({ length: count }, (_, at) => {
		const resource = demo(Artist, `artist-${at}`, `value ${version}`);
		resource.version = `${version}`;
		resource.generation = `${version}`;
		if (resource.id !== undefined) {
			resource.id.uid = `UID${at}`;
		}
		return resource;
	});
}

interface Measured {
	readonly microseconds: number;
	readonly latenciesMs: readonly number[];
}

/** Announces all events in slices, as a busy server would, and waits until all have been handled. */
async function drive(
	events: readonly Resource[],
	listeners: number,
	announce: (resource: Resource, at: number) => void,
	handled: { count: number; readonly latencies: number[] },
	announcedAt: Map<string, number>,
): Promise<Measured> {
	const expected = events.length * listeners;
	const startMs = performance.now();
	for (const [at, event] of events.entries()) {
		announcedAt.set(event.id?.name ?? "", performance.now());
		announce(event, at);
		if (at % 100 === 99) {
			await new Promise((resolve) => setImmediate(resolve));
		}
	}
	while (handled.count < expected) {
		await new Promise((resolve) => setImmediate(resolve));
	}
	const microseconds = ((performance.now() - startMs) * 1000) / expected;
	return { microseconds, latenciesMs: handled.latencies };
}

async function controllers(count: number, events: readonly Resource[]): Promise<Measured> {
	const source = new Source([]);
	const handled = { count: 0, latencies: [] as number[] };
	const announcedAt = new Map<string, number>();
	const manager = createControllerManager({ client: source.client() });
	for (let at = 0; at < count; at++) {
		manager.register(
			defineController({
				name: `controller-${at}`,
				manages: Artist,
				concurrency: 4,
				resyncMs: "never",
				async reconcile(context, { id }) {
					context.cache.get(Artist, id);
					handled.count += 1;
					handled.latencies.push(performance.now() - (announcedAt.get(id.name) ?? 0));
				},
			}),
		);
	}
	const stop = new AbortController();
	const running = manager.run(stop.signal);
	while (manager.state().controllers.some(({ phase }) => phase !== "running")) {
		await new Promise((resolve) => setImmediate(resolve));
	}
	const measured = await drive(
		events,
		count,
		(event, at) => source.announce(event, at + 2),
		handled,
		announcedAt,
	);
	stop.abort();
	await running;
	return measured;
}

async function emitter(count: number, events: readonly Resource[]): Promise<Measured> {
	const emitter = new EventEmitter().setMaxListeners(0);
	const handled = { count: 0, latencies: [] as number[] };
	const announcedAt = new Map<string, number>();
	for (let at = 0; at < count; at++) {
		const cache = new Map<string, Resource>();
		const reconcile = async (key: string) => {
			const found = cache.get(key);
			handled.count += 1;
			handled.latencies.push(performance.now() - (announcedAt.get(found?.id?.name ?? "") ?? 0));
		};
		emitter.on("event", (resource: Resource) => {
			const key = resource.id === undefined ? "" : nameKey(resource.id);
			cache.set(key, resource);
			queueMicrotask(() => void reconcile(key));
		});
	}
	return drive(events, count, (event) => emitter.emit("event", event), handled, announcedAt);
}

const eventCount = numberOption("events", 50_000, 500);
const table = new ComparisonTable("From event to reconcile", "µs");
for (const count of [1, 10, 50]) {
	const events = resources(Math.max(unlessQuick(2_000, 100), Math.floor(eventCount / count)), 2);
	let latenciesMs: readonly number[] = [];
	const figures = await interleave(
		{
			controllers: async () => {
				const measured = await controllers(count, events);
				({ latenciesMs } = measured);
				return measured.microseconds;
			},
			EventEmitter: async () => (await emitter(count, events)).microseconds,
		},
		{ rounds: unlessQuick(5, 1), warmUpRounds: 1 },
	);
	table.add(`${count} controllers`, figures, {
		"p50 ms": format(quantile(latenciesMs, 0.5)),
		"p99 ms": format(quantile(latenciesMs, 0.99)),
	});
}
table.print();

/** Another controller at work meanwhile: an event every 5 ms, and how long each took. */
function workBesides(): { stop(): Promise<readonly number[]> } {
	const source = new Source([]);
	const announcedAt = new Map<string, number>();
	const latencies: number[] = [];
	const manager = createControllerManager({ client: source.client() });
	manager.register(
		defineController({
			name: "besides",
			manages: Artist,
			resyncMs: "never",
			async reconcile(context, { id }) {
				context.cache.get(Artist, id);
				latencies.push(performance.now() - (announcedAt.get(id.name) ?? 0));
			},
		}),
	);
	const stop = new AbortController();
	const running = manager.run(stop.signal);
	const [event] = resources(1, 2);
	let announced = 0;
	const timer = setInterval(() => {
		if (event?.id !== undefined) {
			const name = `besides-${announced}`;
			announcedAt.set(name, performance.now());
			source.announce({ ...event, id: { ...event.id, name } }, announced + 2);
			announced += 1;
		}
	}, 5);
	return {
		async stop() {
			clearInterval(timer);
			while (latencies.length < announced) {
				await new Promise((resolve) => setImmediate(resolve));
			}
			stop.abort();
			await running;
			return latencies;
		},
	};
}

async function primed(count: number): Promise<Row> {
	const source = new Source(resources(count, 1));
	const before = await heapUsed();
	const manager = createControllerManager({ client: source.client() });
	let reconciled = 0;
	manager.register(
		defineController({
			name: "primed",
			manages: Artist,
			concurrency: 4,
			resyncMs: "never",
			reconcile: async () => {
				reconciled += 1;
			},
		}),
	);
	const stop = new AbortController();
	let peak = 0;
	const until = async (isReached: () => boolean) => {
		while (!isReached()) {
			await new Promise((resolve) => setImmediate(resolve));
			peak = Math.max(peak, process.memoryUsage().heapUsed);
		}
	};
	const besides = workBesides();
	const startMs = performance.now();
	const running = manager.run(stop.signal);
	await until(() => manager.state().controllers[0]?.phase === "running");
	const primedMs = performance.now() - startMs;
	await until(() => reconciled === count);
	const allMs = performance.now() - startMs;
	const latencies = await besides.stop();
	const after = await heapUsed();
	stop.abort();
	await running;
	return {
		resources: count.toLocaleString("en-US"),
		"primed ms": format(primedMs),
		"all reconciled ms": format(allMs),
		"heap of cache, B each": format((after - before) / count),
		"peak ÷ final heap": (peak / after).toFixed(2),
		"p99 besides, ms": format(quantile(latencies, 0.99)),
	};
}

const primeRows: Row[] = [];
for (const count of unlessQuick([100_000, 1_000_000], [1_000])) {
	primeRows.push(await primed(count));
}
printTable("Priming (snapshot, cache, then one reconcile each)", primeRows);
