import { systemScheduler } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Task } from "./task.ts";
import {
	type Failure,
	type Outcome,
	type RunningWork,
	TimeLimitError,
	WorkerPool,
	type WorkerPoolOptions,
} from "./worker-pool.ts";

const done: Outcome = { kind: "done" };

function poolOf(
	options: Partial<WorkerPoolOptions<string>> & Pick<WorkerPoolOptions<string>, "work">,
) {
	const clock = new FakeClock();
	const failures: Failure[] = [];
	const overdue: string[] = [];
	const reported: RunningWork[] = [];
	const pool = new WorkerPool<string>({
		runtime: { clock, scheduler: systemScheduler },
		backoff: { baseMs: 5, maxMs: 1_000_000 },
		concurrency: 1,
		reportAfterMs: 400,
		timeLimitMs: 1_000,
		onFailure: (failure) => failures.push(failure),
		onStillRunning: (work) => reported.push(work),
		onOverdue: (key) => overdue.push(key),
		...options,
	});
	return { clock, pool, failures, overdue, reported };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("WorkerPool", () => {
	it("never calls within the call that adds", async () => {
		const worked: string[] = [];
		const { pool } = poolOf({
			work: (item) => {
				worked.push(item);
				return done;
			},
		});
		pool.add("a", "a", "live");
		expect(worked).toEqual([]);
		await settle();
		expect(worked).toEqual(["a"]);
	});

	it("delays a failed item by its backoff, to the millisecond, and no other item", async () => {
		const calls: [string, number][] = [];
		const { clock, pool } = poolOf({
			work: async (item) => {
				calls.push([item, clock.monotonic()]);
				if (item === "poisoned") {
					throw new Error("poison");
				}
				return done;
			},
		});
		pool.add("poisoned", "poisoned", "live");
		await clock.advanceAsync(5 + 10 + 20 + 40);
		pool.add("other", "other", "live");
		await settle();
		await clock.advanceAsync(80);
		expect(calls).toEqual([
			["poisoned", 0],
			["poisoned", 5],
			["poisoned", 15],
			["poisoned", 35],
			["poisoned", 75],
			["other", 75],
			["poisoned", 155],
		]);
	});

	it.each(["sync", "async"])(
		"frees the slot of %s work whose failure can't be reported",
		async (kind) => {
			const worked: string[] = [];
			const { pool } = poolOf({
				onFailure: () => {
					throw new Error("the log fails");
				},
				work: (item) => {
					worked.push(item);
					if (item === "good") {
						return done;
					}
					const failure = new Error("poison");
					if (kind === "async") {
						return Promise.reject(failure);
					}
					throw failure;
				},
			});
			pool.add("bad", "bad", "live");
			pool.add("good", "good", "live");
			await settle();
			expect(worked).toEqual(["bad", "good"]);
			expect(pool.keyState("bad")?.failure).toMatchObject({ message: "poison", failures: 1 });
			await pool.idle();
		},
	);

	it("frees the slot of work that passes its time limit, and keeps its key locked", async () => {
		const tasks = new Map<string, Task>();
		const { promise: stuck, resolve } = Promise.withResolvers<Outcome>();
		const { clock, pool, overdue } = poolOf({
			work: (item, task) => {
				tasks.set(item, task);
				return item === "stuck" ? stuck : done;
			},
		});
		pool.add("a", "stuck", "live");
		pool.add("b", "b", "live");
		await clock.advanceAsync(999);
		expect([...tasks.keys()]).toEqual(["stuck"]);
		await clock.advanceAsync(1);
		expect(tasks.get("stuck")?.signal.aborted).toBe(true);
		expect([...tasks.keys()]).toEqual(["stuck", "b"]);
		expect(overdue).toEqual(["a"]);
		expect(pool.overdue).toEqual(["a"]);
		pool.add("a", "again", "live");
		await clock.advanceAsync(10_000);
		expect(tasks.has("again")).toBe(false);
		resolve(done);
		await settle();
		expect(tasks.has("again")).toBe(true);
		expect(pool.overdue).toEqual([]);
		expect(pool.empty).toBe(true);
	});

	it("reports work that is still running, once, and for how long it has been", async () => {
		const { promise, resolve } = Promise.withResolvers<Outcome>();
		const { clock, pool, reported, overdue } = poolOf({ concurrency: 2, work: () => promise });
		pool.add("a", "a", "live");
		await clock.advanceAsync(100);
		pool.add("b", "b", "live");
		await clock.advanceAsync(299);
		expect(reported).toEqual([]);
		expect(pool.stillRunning).toEqual([]);
		await clock.advanceAsync(1);
		expect(reported).toEqual([{ key: "a", runningMs: 400 }]);
		await clock.advanceAsync(100);
		expect(reported.slice(1)).toEqual([{ key: "b", runningMs: 400 }]);
		expect(pool.stillRunning).toEqual([
			{ key: "a", runningMs: 500 },
			{ key: "b", runningMs: 400 },
		]);
		await clock.advanceAsync(499);
		expect(overdue).toEqual([]);
		await clock.advanceAsync(1);
		expect(overdue).toEqual(["a"]);
		resolve(done);
		await settle();
		expect(pool.stillRunning).toEqual([]);
		expect(reported).toHaveLength(2);
	});

	it("counts work that was aborted as failed, whatever it returns, and backs off", async () => {
		const starts: number[] = [];
		const { clock, pool, failures } = poolOf({
			work: (_, task) => {
				starts.push(clock.monotonic());
				return starts.length === 1
					? new Promise((resolve) => task.signal.addEventListener("abort", () => resolve(done)))
					: done;
			},
		});
		pool.add("a", "a", "live");
		await clock.advanceAsync(1_004);
		expect(starts).toEqual([0]);
		expect(
			failures.map(({ error, failures: count, delayMs }) => [`${error}`, count, delayMs]),
		).toEqual([["TimeLimitError: a exceeded its time limit of 1000 ms and was aborted", 1, 5]]);
		await clock.advanceAsync(1);
		expect(starts).toEqual([0, 1_005]);
		expect(pool.empty).toBe(true);
	});

	it("reports why aborted work failed, even if the work rejects with its own error", async () => {
		const { clock, pool, failures } = poolOf({
			work: (_, task) =>
				new Promise((_resolve, reject) =>
					task.signal.addEventListener("abort", () => reject(new Error("query canceled"))),
				),
		});
		pool.add("a", "a", "live");
		await clock.advanceAsync(1_000);
		expect(failures[0]?.error).toBeInstanceOf(TimeLimitError);
		expect(failures[0]?.error).toHaveProperty("cause.message", "query canceled");
	});

	it("sets one timer, however much work is under way, and none once it is stopped", async () => {
		const timers: number[] = [];
		const clock = new FakeClock();
		const counted = {
			...{ now: () => clock.now(), monotonic: () => clock.monotonic() },
			setTimer: (delayMs: number, callback: () => void) => {
				timers.push(delayMs);
				return clock.setTimer(delayMs, callback);
			},
		};
		const { pool } = poolOf({
			runtime: { clock: counted, scheduler: systemScheduler },
			concurrency: 10,
			work: async () => done,
		});
		for (let at = 0; at < 1_000; at++) {
			pool.add(`k${at}`, "", "live");
		}
		while (!pool.empty) {
			await settle();
		}
		expect(timers).toEqual([400]);
		pool.stop();
		expect(clock.nextTimerMs()).toBeUndefined();
	});

	it("stops freeing slots when too many ignore their limit", async () => {
		let started = 0;
		const { clock, pool } = poolOf({
			work: () => {
				started += 1;
				return new Promise(() => {});
			},
		});
		for (let at = 0; at < 200; at++) {
			pool.add(`k${at}`, "", "live");
		}
		await clock.advanceAsync(300_000);
		expect(started).toBe(101);
	});

	it("holds a key until it is released, without occupying a slot", async () => {
		const waiting = new Set(["a"]);
		const worked: string[] = [];
		const { pool } = poolOf({
			mustWait: (key) => waiting.has(key),
			work: (item) => {
				worked.push(item);
				return done;
			},
		});
		pool.add("a", "a", "live");
		pool.add("b", "b", "live");
		await settle();
		expect(worked).toEqual(["b"]);
		waiting.delete("a");
		pool.release("a");
		await settle();
		expect(worked).toEqual(["b", "a"]);
	});

	it("keeps a key locked until the work elsewhere has ended", async () => {
		const worked: string[] = [];
		const { promise, resolve } = Promise.withResolvers<void>();
		const { pool } = poolOf({
			work: (item) => {
				worked.push(item);
				return done;
			},
		});
		pool.lock("a", "", promise);
		pool.add("a", "a", "live");
		await settle();
		expect(worked).toEqual([]);
		resolve();
		await settle();
		expect(worked).toEqual(["a"]);
	});

	it("yields to the event loop during a long backlog", async () => {
		let worked = 0;
		const { pool } = poolOf({
			work: () => {
				worked += 1;
				return done;
			},
		});
		for (let at = 0; at < 10_000; at++) {
			pool.add(`k${at}`, "", "live");
		}
		await settle();
		expect(worked).toBeGreaterThan(0);
		expect(worked).toBeLessThan(10_000);
		while (!pool.empty) {
			await settle();
		}
		expect(worked).toBe(10_000);
	});

	it("tells producers when there is room", async () => {
		const { promise: gate, resolve } = Promise.withResolvers<Outcome>();
		const { pool } = poolOf({ work: () => gate });
		for (let at = 0; at < 10; at++) {
			pool.add(`k${at}`, "", "live");
		}
		await settle();
		expect(pool.room(10)).toBeUndefined();
		let room = false;
		void pool.room(3)?.then(() => {
			room = true;
		});
		await settle();
		expect(room).toBe(false);
		resolve(done);
		await settle();
		expect(room).toBe(true);
	});

	it("tells a producer that there is room for it while another one waits for more", async () => {
		const ends: ((outcome: Outcome) => void)[] = [];
		const { pool } = poolOf({ work: () => new Promise((resolve) => ends.push(resolve)) });
		for (let at = 0; at < 4; at++) {
			pool.add(`k${at}`, "", "live");
		}
		await settle();
		const told: number[] = [];
		for (const limit of [1, 3]) {
			void pool.room(limit)?.then(() => told.push(limit));
		}
		for (let at = 0; at < 4; at++) {
			ends[at]?.(done);
			await settle();
			expect(told).toEqual([[], [3], [3], [3, 1]][at]);
		}
	});

	it("works on each key once at a time, on no more than it may, and on everything in the end", async () => {
		const step = fc.record({
			key: fc.constantFrom("a", "b", "c", "d", "e"),
			delayMs: fc.nat(20),
			live: fc.boolean(),
			advanceMs: fc.nat(15),
		});
		await fc.assert(
			fc.asyncProperty(
				fc.array(step, { maxLength: 60 }),
				fc.integer({ min: 1, max: 4 }),
				fc.integer(),
				async (steps, concurrency, seed) => {
					const random = seededRandom(seed);
					const active = new Set<string>();
					const latest = new Map<string, number>();
					const workedOn = new Map<string, number>();
					const clock = new FakeClock();
					let ready: (() => void)[] = [];
					const pool = new WorkerPool<number>({
						runtime: {
							clock,
							scheduler: { schedule: (task) => void ready.push(task), turn: () => undefined },
						},
						backoff: { baseMs: 5, maxMs: 40 },
						concurrency,
						reportAfterMs: 500_000,
						timeLimitMs: 1_000_000,
						onFailure: () => {},
						onStillRunning: () => {},
						onOverdue: () => {},
						work: async (item, { key }) => {
							expect(active.has(key)).toBe(false);
							active.add(key);
							expect(active.size).toBeLessThanOrEqual(concurrency);
							await new Promise<void>((resolve) => clock.setTimer(random.next() * 20, resolve));
							active.delete(key);
							if (random.next() < 0.3) {
								throw new Error("fails now and then");
							}
							workedOn.set(key, item);
							return random.next() < 0.1 ? { kind: "again", delayMs: random.next() * 30 } : done;
						},
					});
					const turn = async (byMs: number) => {
						await clock.advanceAsync(byMs);
						while (ready.length > 0) {
							const tasks = ready;
							ready = [];
							for (const task of tasks.sort(() => random.next() - 0.5)) {
								task();
							}
							await settle();
						}
					};
					for (const [at, { key, delayMs, live, advanceMs }] of steps.entries()) {
						latest.set(key, at);
						pool.add(key, at, live ? "live" : "background", delayMs);
						await turn(advanceMs);
					}
					for (let rounds = 0; !pool.empty && rounds < 1_000; rounds++) {
						await turn(10);
					}
					expect(pool.empty).toBe(true);
					expect(workedOn).toEqual(latest);
				},
			),
			{ numRuns: 60 },
		);
	});
});
