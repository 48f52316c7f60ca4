import { expect, it } from "vitest";
import { GiveBackSpace, mostPages } from "./give-back-space.ts";

/** A file of which so much is free, and a thread without other work. */
function fakeThread(excess: number, stepMs = 2, hasTail = false) {
	const steps: number[] = [];
	let planned: { readonly dueMs: number; readonly run: () => void } | undefined;
	let nowMs = 0;
	let checkpoints = 0;
	let failure: Error | undefined;
	const failures: unknown[] = [];
	let stepped = 0;
	const space = {
		hasTail,
		giveBack(most: number) {
			if (failure !== undefined) {
				throw failure;
			}
			const pages = Math.min(most, excess);
			if (pages > 0) {
				steps.push(pages);
				excess -= pages;
				nowMs += stepMs;
			}
			return pages;
		},
		checkpoint() {
			checkpoints += 1;
		},
	};
	const giveBack = new GiveBackSpace({
		space: () => space,
		schedule(delayMs, run) {
			expect(planned).toBeUndefined();
			planned = { dueMs: nowMs + delayMs, run };
			return () => {
				planned = undefined;
			};
		},
		now: () => nowMs,
		stepped: () => {
			stepped += 1;
		},
		failed: (reported) => failures.push(reported),
	});
	return {
		giveBack,
		steps,
		fail: (error: Error | undefined) => {
			failure = error;
		},
		failures,
		stepped: () => stepped,
		checkpoints: () => checkpoints,
		/** Runs what is planned next, and returns how long that was away. */
		next() {
			const due = planned;
			if (due === undefined) {
				return undefined;
			}
			planned = undefined;
			const pauseMs = due.dueMs - nowMs;
			nowMs = due.dueMs;
			due.run();
			return pauseMs;
		},
	};
}

it("gives back a bounded number of pages a step, half of the time, until nothing exceeds, and then moves the log", () => {
	const thread = fakeThread(3 * mostPages + 1);
	thread.giveBack.written();
	const pauses = [thread.next(), thread.next(), thread.next(), thread.next()];
	expect(thread.steps).toEqual([mostPages, mostPages, mostPages, 1]);
	expect(thread.stepped()).toBe(4);
	// The first pause follows the write.
	expect(pauses.slice(2)).toEqual([2, 2]);
	expect(thread.checkpoints()).toBe(0);
	thread.next();
	expect(thread.checkpoints()).toBe(1);
	expect(thread.next()).toBeUndefined();
});

it("takes a twentieth of the time of a thread that writes meanwhile, and leaves the log to the writes", () => {
	const thread = fakeThread(2 * mostPages);
	thread.giveBack.written();
	thread.next();
	thread.giveBack.written();
	expect(thread.next()).toBe(2 * 19);
	thread.giveBack.written();
	expect(thread.next()).toBe(2 * 19);
	expect(thread.steps).toHaveLength(2);
	expect(thread.checkpoints()).toBe(0);
	thread.next();
	expect(thread.checkpoints()).toBe(1);
});

it("takes smaller steps where they take long", () => {
	const thread = fakeThread(10_000, 40);
	thread.giveBack.written();
	for (let step = 0; step < 6; step++) {
		thread.next();
	}
	expect(thread.steps).toEqual([256, 128, 64, 32, 16, 16]);
});

it("looks once after many writes, and does nothing if nothing exceeds", () => {
	const thread = fakeThread(0);
	for (let write = 0; write < 100; write++) {
		thread.giveBack.written();
	}
	expect(thread.next()).toBe(200);
	expect(thread.next()).toBeUndefined();
	expect([thread.steps, thread.checkpoints()]).toEqual([[], 0]);
});

it("moves the log of a process that was killed before it did", () => {
	for (const hasTail of [true, false]) {
		const thread = fakeThread(0, 2, hasTail);
		thread.giveBack.opened();
		expect(thread.next()).toBe(200);
		expect(thread.next()).toBeUndefined();
		expect(thread.checkpoints()).toBe(hasTail ? 1 : 0);
	}
});

it("tries again later if the disk was full; another failure is reported at once, and it never tries again", () => {
	const thread = fakeThread(mostPages);
	thread.giveBack.written();
	thread.fail(Object.assign(new Error("database or disk is full"), { errcode: 13 }));
	thread.next();
	expect(thread.failures).toEqual([]);
	const failure = Object.assign(new Error("disk I/O error"), { errcode: 1034 });
	thread.fail(failure);
	expect(thread.next()).toBe(60_000);
	expect(thread.failures).toEqual([failure]);
	thread.fail(undefined);
	thread.giveBack.written();
	thread.next();
	expect(thread.steps).toEqual([]);
});
