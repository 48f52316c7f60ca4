import { type Clock, silentLogger, sleep } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { type EventStorage, MemoryEventStorage, StorageUnavailable } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { EventLog, type EventLogOptions } from "./event-log.ts";
import { artist, happened } from "./events.fixture.ts";
import type { RecordedEvent } from "./recorded-event.ts";

const milesKey = "demo.Artist/default/default/miles";

interface Lab {
	readonly runtime: SeededRuntime;
	readonly storage: MemoryEventStorage;
	/** Starts a server. */
	server(name: string, options?: Partial<EventLogOptions>): EventLog;
}

function lab(seed = 1): Lab {
	const runtime = seededRuntime({ seed, nowMs: 1_000_000 });
	const storage = new MemoryEventStorage(runtime.clock);
	return {
		...{ runtime, storage },
		server(name, options = {}) {
			const log = new EventLog({
				...{ storage, server: name, isShared: true, runtime, logger: silentLogger },
				...options,
			});
			log.start();
			return log;
		},
	};
}

/** A storage whose steps take time, and that fails. */
function faulty({ runtime }: Lab, storage: EventStorage, isFaulty: () => boolean): EventStorage {
	const { random, clock } = runtime;
	const delay = () => sleep(clock, isFaulty() ? random.next() * 3_000 : 1);
	const maybeFail = () => {
		if (isFaulty() && random.next() < 0.3) {
			throw new StorageUnavailable("the storage does not respond");
		}
	};
	return {
		async write(rows, options) {
			await delay();
			maybeFail();
			await storage.write(rows, options);
			await delay();
			maybeFail();
		},
		async *follow(signal) {
			await delay();
			maybeFail();
			for await (const rows of storage.follow(signal)) {
				await delay();
				yield rows;
				maybeFail();
			}
		},
	};
}

const shown = (events: readonly RecordedEvent[]) =>
	events
		.map(({ id, reason, count, message, server }) => ({ id, reason, count, message, server }))
		.sort((a, b) => (a.id < b.id ? -1 : 1));

describe("an event log", () => {
	it("shows what it records at once, and the servers that share its storage after a second", async () => {
		const { runtime, server } = lab();
		const [one, two] = [server("one"), server("two")];
		await runtime.scheduler.advance(10);
		one.record(happened("miles"));
		expect(one.of(milesKey)).toMatchObject([{ reason: "Booked", server: "one" }]);
		await runtime.scheduler.advance(1_100);
		two.record(happened("miles"));
		await runtime.scheduler.advance(1_100);
		expect(two.of(milesKey)).toMatchObject([{ count: 2, server: "two" }]);
		expect(shown(one.all())).toEqual(shown(two.all()));
	});

	it("writes once a second, however often events occur", async () => {
		const { runtime, storage, server } = lab();
		let writes = 0;
		const counted: EventStorage = {
			write: (...write) => {
				writes += 1;
				return storage.write(...write);
			},
			follow: (signal) => storage.follow(signal),
		};
		const log = server("one", { storage: counted });
		for (let n = 0; n < 1_000; n++) {
			log.record(happened(`a${n % 50}`));
			await runtime.scheduler.advance(10);
		}
		// The first event is written at once; later, only what is worth it.
		expect(writes).toBeLessThanOrEqual(11);
		await runtime.scheduler.advance(62_000);
		const other = server("two");
		await runtime.scheduler.advance(10);
		expect(other.all().map(({ count }) => count)).toEqual(Array.from({ length: 50 }, () => 20));
	});

	it("stays within its bounds in a flood of events", async () => {
		const { runtime, storage, server } = lab();
		const log = server("one", { limits: { events: 1_000 } });
		using changes = log.changes(() => true);
		for (let second = 0; second < 20; second++) {
			for (let n = 0; n < 2_000; n++) {
				log.record(happened(`a${second}-${n}`, { message: "x".repeat(500) }));
			}
			await runtime.scheduler.advance(1_000);
			expect(log.state.own).toBe(1_000);
			expect(log.state.unstored).toBeLessThan(3_000);
			expect(storage.size).toBeLessThan(3_000);
			expect(changes.size).toBeLessThanOrEqual(1_000);
		}
		await runtime.scheduler.advance(60_000);
		expect(log.state).toMatchObject({ own: 1_000, unstored: 0, recorded: 40_000 });
		expect(storage.size).toBe(1_000);
	});

	it("keeps the events of its earlier process, and of servers that have stopped", async () => {
		const { runtime, server } = lab();
		const sole = server("one", { isShared: false });
		sole.record(happened("miles"));
		await runtime.scheduler.run(sole.close());
		const restarted = server("one", { isShared: false });
		restarted.record(happened("miles", { message: "again" }));
		await runtime.scheduler.advance(2_000);
		expect(restarted.of(milesKey)).toMatchObject([{ count: 2, message: "again" }]);
		await runtime.scheduler.run(restarted.close());
		const other = server("two");
		await runtime.scheduler.advance(10);
		expect(other.of(milesKey)).toMatchObject([{ count: 2, server: "one" }]);
	});

	it("forgets events after an hour, and their rows", async () => {
		const { runtime, storage, server } = lab();
		const [one, two] = [server("one"), server("two")];
		one.record(happened("miles"));
		await runtime.scheduler.advance(1_800_000);
		one.record(happened("trane"));
		await runtime.scheduler.advance(1_860_000);
		for (const log of [one, two]) {
			expect(log.all()).toMatchObject([{ resource: { name: "trane" } }]);
			expect(log.state.own + log.state.others).toBe(1);
		}
		await runtime.scheduler.advance(1_860_000);
		expect(storage.size).toBe(0);
	});

	it("works without its storage, and stores the events when that responds again", async () => {
		const it = lab();
		let isDown = true;
		const storage: EventStorage = {
			write: async (...write) => {
				if (isDown) {
					throw new StorageUnavailable("down");
				}
				await it.storage.write(...write);
			},
			async *follow(signal) {
				if (isDown) {
					throw new StorageUnavailable("down");
				}
				yield* it.storage.follow(signal);
			},
		};
		const log = it.server("one", { storage });
		log.record(happened("miles"));
		await it.runtime.scheduler.advance(600_000);
		expect(log.of(milesKey)).toMatchObject([{ count: 1 }]);
		isDown = false;
		await it.runtime.scheduler.advance(60_000);
		expect(it.storage.size).toBe(1);
	});

	it("closes although its storage does not respond", async () => {
		const { runtime, server } = lab();
		const never: EventStorage = {
			write: () => new Promise(() => {}),
			async *follow() {
				yield [];
				await new Promise(() => {});
			},
		};
		const log = server("one", { storage: never });
		await runtime.scheduler.advance(10);
		log.record(happened("miles"));
		await runtime.scheduler.advance(10);
		await runtime.scheduler.run(log.close());
	});

	it("skips rows that it can't decode, or whose events are of another resource", async () => {
		const { runtime, storage, server } = lab();
		const forger = server("forger");
		forger.record(happened("miles"));
		await runtime.scheduler.run(forger.close());
		const [[row] = []] = await Array.fromAsync(first(storage.follow(new AbortController().signal)));
		const body = row?.body ?? new Uint8Array();
		await storage.write(
			[
				{ key: "x/demo.Artist/default/secret/trane", body },
				{ key: "x/demo.Artist/default/default/monk", body: Uint8Array.of(255, 255, 255) },
				{ key: "without an owner", body },
			],
			{ ttlMs: 1_000 },
		);
		const log = server("one");
		await runtime.scheduler.advance(10);
		expect(log.all()).toMatchObject([{ resource: artist("miles") }]);
	});

	it("stores at most 58 MB an hour, however much happens", async () => {
		const { runtime, storage, server } = lab();
		let bytes = 0;
		const counted: EventStorage = {
			write: (rows, options) => {
				bytes += rows.reduce((sum, { body }) => sum + (body?.byteLength ?? 0), 0);
				return storage.write(rows, options);
			},
			follow: (signal) => storage.follow(signal),
		};
		const log = server("one", { storage: counted });
		for (let second = 0; second < 300; second++) {
			for (let n = 0; n < 20; n++) {
				log.record(happened(`a${second % 100}`, { reason: `R${n}`, message: "x".repeat(900) }));
			}
			await runtime.scheduler.advance(1_000);
		}
		expect(bytes).toBeLessThan(600 * 1_024 + 300 * 17 * 1_024);
		expect(bytes).toBeGreaterThan(300 * 15 * 1_024);
	});

	it("records nothing of what can't be stored, and goes on", async () => {
		const { runtime, storage, server } = lab();
		const log = server("one");
		log.record(happened("x".repeat(600_000)));
		log.record(happened("\ud800"));
		log.record(happened("miles", { resource: artist("miles", "u".repeat(1_000)) }));
		log.record(happened("trane", { message: { toString: () => "odd" } as unknown as string }));
		log.record(happened("monk", { message: Object.create(null) as string }));
		log.record(happened("miles"));
		await runtime.scheduler.advance(5_000);
		expect(log.all().map(({ resource }) => resource.name)).toEqual(["trane", "miles"]);
		expect(storage.size).toBe(2);
		await runtime.scheduler.run(log.close());
	});

	it("stores all others although the storage refuses some rows", async () => {
		const it = lab();
		const storage: EventStorage = {
			write: async (rows, options) => {
				if (rows.some(({ key }) => key.includes("poison"))) {
					throw new StorageUnavailable("refused");
				}
				await it.storage.write(rows, options);
			},
			follow: (signal) => it.storage.follow(signal),
		};
		const log = it.server("one", { storage });
		log.record(happened("poison"));
		for (let n = 0; n < 50; n++) {
			log.record(happened(`a${n}`));
		}
		await it.runtime.scheduler.advance(1_200_000);
		expect(it.storage.size).toBe(50);
		await it.runtime.scheduler.run(log.close());
	});

	it("stores again what the storage has lost", async () => {
		const it = lab();
		let lost = new AbortController();
		const storage: EventStorage = {
			write: (...write) => it.storage.write(...write),
			follow: (signal) => it.storage.follow(AbortSignal.any([signal, lost.signal])),
		};
		const log = it.server("one", { storage });
		log.record(happened("miles"));
		await it.runtime.scheduler.advance(2_000);
		const rows = await Array.fromAsync(first(it.storage.follow(new AbortController().signal)));
		const gone = rows.flat().map(({ key }) => ({ key, body: undefined }));
		await it.storage.write(gone, { ttlMs: 1 });
		expect(it.storage.size).toBe(0);
		lost.abort(new StorageUnavailable("restored"));
		lost = new AbortController();
		await it.runtime.scheduler.advance(5_000);
		expect(it.storage.size).toBe(1);
	});

	it("ignores events of a clock that was far ahead", async () => {
		const { runtime, server } = lab();
		const { clock } = runtime;
		const ahead: Clock = {
			now: () => 4e12,
			monotonic: () => clock.monotonic(),
			setTimer: (delayMs, callback) => clock.setTimer(delayMs, callback),
		};
		const future = server("future", { runtime: { ...runtime, clock: ahead } });
		future.record(happened("miles"));
		const log = server("one");
		await runtime.scheduler.advance(100);
		expect(log.all()).toEqual([]);
	});

	it("agrees with the others in the end, whatever fails", async () => {
		for (let seed = 1; seed <= 30; seed++) {
			const it = lab(seed);
			const { random, scheduler } = it.runtime;
			let isFaulty = true;
			const storage = faulty(it, it.storage, () => isFaulty);
			const limits = { events: 40, perResource: 3 };
			let logs = ["a", "b", "c"].map((name) => it.server(name, { storage, limits }));
			let restarts = 0;
			for (let step = 0; step < 120; step++) {
				const log = logs[Math.floor(random.next() * logs.length)];
				const names = random.next() < 0.7 ? 6 : 60;
				log?.record(
					happened(`a${Math.floor(random.next() * names)}`, {
						reason: `R${Math.floor(random.next() * 5)}`,
						message: `step ${step}`,
					}),
				);
				if (random.next() < 0.2) {
					await scheduler.advance(random.next() * 4_000);
				}
				if (log !== undefined && random.next() < 0.02) {
					// What it has stored stays.
					void log.close();
					restarts += 1;
					const next = it.server(`restart ${restarts}`, { storage, limits });
					logs = [...logs.filter((each) => each !== log), next];
				}
			}
			isFaulty = false;
			await scheduler.advance(120_000);
			const [reference, ...others] = logs.map((log) => shown(log.all()));
			for (const other of others) {
				expect(other, `seed ${seed}`).toEqual(reference);
			}
			for (const log of logs) {
				expect(log.state.unstored, `seed ${seed}`).toBe(0);
				await scheduler.run(log.close());
			}
		}
	});
});

async function* first<T>(items: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
	for await (const item of items) {
		yield item;
		return;
	}
}
