import type { Random } from "@plinth/runtime";
import { SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import type { Task } from "./task.ts";
import { type Outcome, WorkerPool } from "./worker-pool.ts";

const keys = ["a", "b", "c", "d", "e", "f"] as const;
const reportAfterMs = 50;
const timeLimitMs = 200;

/** Makes the work of a pool from the work that a reconciler does. */
type Wrap = (work: (task: Task) => Promise<Outcome>) => (task: Task) => Promise<Outcome>;

/** What a simulation found. */
interface Found {
	readonly violations: readonly string[];
	readonly reports: number;
	readonly aborts: number;
}

/** A pool that treats aborted work as ended: the fault that must be detected. */
const releasesOnAbort: Wrap = (work) => (task) =>
	Promise.race([
		work(task),
		new Promise<Outcome>((resolve) =>
			task.signal.addEventListener("abort", () => resolve({ kind: "done" })),
		),
	]);

/**
 * Runs work of random lengths, some of which heeds its signal and some of which ignores it, in an order
 * that the seed decides. Timers fire late, as on a loaded machine.
 */
async function simulate(seed: number, wrap: Wrap = (work) => work): Promise<Found> {
	const random = seededRandom(seed);
	const scheduler = new SeededScheduler({ seed });
	const { clock } = scheduler;
	const concurrency = 1 + Math.floor(random.next() * 3);
	const violations: string[] = [];
	const active = new Map<string, number>();
	const reported = new Map<string, number>();
	const overdue = new Map<string, number>();
	const added = new Map<string, number>();
	const worked = new Map<string, number>();
	const seen = { reports: 0, aborts: 0 };

	const pool = new WorkerPool<number>({
		runtime: { clock, scheduler },
		backoff: { baseMs: 5, maxMs: 100 },
		concurrency,
		reportAfterMs,
		timeLimitMs,
		onFailure: () => {},
		onStillRunning: ({ key, runningMs }) => {
			count(reported, key);
			if (runningMs < reportAfterMs) {
				violations.push(`${key} was reported after ${runningMs} ms`);
			}
		},
		onOverdue: (key) => {
			count(overdue, key);
			const ranMs = clock.monotonic() - (active.get(key) ?? 0);
			if (ranMs < timeLimitMs) {
				violations.push(`${key} was aborted after ${ranMs} ms`);
			}
		},
		work: (item, task) => wrap(() => work(item, task))(task),
	});

	async function work(item: number, task: Task): Promise<Outcome> {
		const { key } = task;
		if (active.has(key)) {
			violations.push(`${key} is processed twice at a time`);
		}
		const startedMs = clock.monotonic();
		active.set(key, startedMs);
		const inTime = [...active.keys()].filter((each) => !overdue.has(each));
		if (inTime.length > concurrency) {
			violations.push(
				`${inTime.length} keys are processed concurrently, of at most ${concurrency}`,
			);
		}
		await lengthOf(random, clock, task.signal);
		active.delete(key);
		const [reports, aborts] = [reported.get(key) ?? 0, overdue.get(key) ?? 0];
		reported.delete(key);
		overdue.delete(key);
		if (reports > 1 || aborts > 1) {
			violations.push(`${key} was reported ${reports} times and aborted ${aborts} times`);
		}
		if (aborts === 0) {
			worked.set(key, item);
		}
		seen.reports += reports;
		seen.aborts += aborts;
		return { kind: "done" };
	}

	for (let step = 0; step < 60; step++) {
		const key = keys[Math.floor(random.next() * keys.length)] ?? "a";
		added.set(key, step);
		pool.add(key, step, random.next() < 0.5 ? "live" : "background", random.next() * 20);
		await scheduler.runSome(Math.floor(random.next() * 5));
		await clock.advanceAsync(random.next() * 60);
	}
	for (let round = 0; !pool.empty && round < 2_000; round++) {
		await scheduler.runSome(1_000);
		await clock.advanceAsync(20);
	}
	if (!pool.empty) {
		violations.push("the pool did not come to rest");
	}
	for (const [key, item] of added) {
		if (worked.get(key) !== item) {
			violations.push(`${key}: item ${item} was never worked on within the limit`);
		}
	}
	pool.stop();
	return { ...seen, violations };
}

/** Takes some time: mostly little, now and then too much, heeding the signal or not. */
async function lengthOf(
	random: Random,
	clock: SeededScheduler["clock"],
	signal: AbortSignal,
): Promise<void> {
	const dice = random.next();
	const ms = dice < 0.6 ? random.next() * 40 : dice < 0.8 ? random.next() * 190 : 1_000;
	const heeds = random.next() < 0.5;
	await new Promise<void>((resolve) => {
		clock.setTimer(ms, resolve);
		if (heeds) {
			signal.addEventListener("abort", () => resolve());
		}
	});
}

function count(counts: Map<string, number>, key: string): void {
	counts.set(key, (counts.get(key) ?? 0) + 1);
}

describe("time limits of work under a seeded scheduler", () => {
	it("report and abort each task once, and never process a key twice at a time", async () => {
		const seen = { reports: 0, aborts: 0 };
		for (let seed = 1; seed <= 60; seed++) {
			const { violations, reports, aborts } = await simulate(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
			seen.reports += reports;
			seen.aborts += aborts;
		}
		expect(seen.reports).toBeGreaterThan(100);
		expect(seen.aborts).toBeGreaterThan(100);
	});

	it("would be caught releasing the key of work that ignores its signal", async () => {
		const found: string[] = [];
		for (let seed = 1; seed <= 60 && found.length === 0; seed++) {
			found.push(...(await simulate(seed, releasesOnAbort)).violations);
		}
		expect(found.some((violation) => violation.endsWith("is processed twice at a time"))).toBe(
			true,
		);
	});
});
