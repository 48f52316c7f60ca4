import { AsyncLocalStorage } from "node:async_hooks";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { EventLoopScheduler } from "./event-loop-scheduler.ts";
import type { Random } from "./random.ts";
import { systemScheduler } from "./system-scheduler.ts";
import { CountedEventLoop } from "./testing/counted-event-loop.ts";
import { seededRandom } from "./testing/seeded-random.ts";

/** The budget of the scheduler, and the most turns that start without regard to the clock. */
const budgetMs = 5;
const mostTurns = 16 + 32;

/** Loops of turns, each of a duration that is drawn. Returns the longest time that the turns of an iteration took. */
async function runLoops(
	loop: CountedEventLoop,
	loops: number,
	durationMs: () => number,
): Promise<number> {
	const scheduler = new EventLoopScheduler(loop);
	await Promise.all(
		Array.from({ length: loops }, async () => {
			for (let step = 0; step < 100; step++) {
				await scheduler.beginCall();
				loop.work(durationMs());
				scheduler.endCall();
			}
		}),
	);
	return loop.longestMs;
}

function drawnDuration(random: Random): () => number {
	const longestMs = random.next() * 3;
	return () => random.next() * longestMs;
}

describe("turns of the event loop", () => {
	it("are over after the budget and a few more turns, however many loops there are and long their turns", () =>
		forEachSeed(20, async (seed) => {
			const random = seededRandom(seed);
			const loops = 1 + Math.floor(random.next() * 200);
			const longestMs = await runLoops(new CountedEventLoop(), loops, drawnDuration(random));
			expect(longestMs).toBeLessThan(budgetMs + mostTurns * 3);
		}));

	it("would be found to block the event loop without a budget", async () => {
		const loop = new CountedEventLoop();
		loop.now = () => 0;
		expect(await runLoops(loop, 4, () => 1)).toBe(400);
	});

	it("end in time if short ones are followed by long ones", async () => {
		const loop = new CountedEventLoop();
		let step = 0;
		const longestMs = await runLoops(loop, 1, () => (step++ < 20 ? 0.001 : 2));
		expect(longestMs).toBeLessThan(budgetMs + mostTurns * 2);
		// From then on, one turn follows each reading of the clock.
		expect(loop.iterations).toBeGreaterThan((80 - 16) / (budgetMs / 2 + 1) - 1);
	});

	it("start in the order in which they were requested", () =>
		forEachSeed(20, async (seed) => {
			const random = seededRandom(seed);
			const loop = new CountedEventLoop();
			const scheduler = new EventLoopScheduler(loop);
			const requested: number[] = [];
			const started: number[] = [];
			const loops = Array.from({ length: 8 }, async () => {
				for (let step = 0; step < 60; step++) {
					const number = requested.push(requested.length);
					const start = () => {
						started.push(number);
						loop.nowMs += random.next();
					};
					if (random.next() < 0.5) {
						scheduler.schedule(start);
						continue;
					}
					await new Promise<void>((resolve) => {
						scheduler.schedule(() => {
							start();
							resolve();
						});
					});
					if (random.next() < 0.05) {
						await new Promise((resolve) => setImmediate(resolve));
					}
				}
			});
			await Promise.all(loops);
			scheduler.schedule(() => {});
			while (scheduler.isBehind) {
				await new Promise((resolve) => setImmediate(resolve));
			}
			await new Promise((resolve) => setImmediate(resolve));
			expect(started).toEqual(requested.map((number) => number + 1));
		}));

	it("run in the asynchronous context in which they were requested", async () => {
		const loop = new CountedEventLoop();
		const scheduler = new EventLoopScheduler(loop);
		const context = new AsyncLocalStorage<number>();
		const seen = await Promise.all(
			Array.from({ length: 100 }, (_, number) =>
				context.run(
					number,
					() =>
						new Promise((resolve) => {
							scheduler.schedule(() => {
								loop.nowMs += 1;
								resolve(context.getStore());
							});
						}),
				),
			),
		);
		expect(seen).toEqual(Array.from({ length: 100 }, (_, number) => number));
		expect(loop.iterations).toBeGreaterThan(2);
	});

	it("read the clock rarely while they are short", async () => {
		const loop = new CountedEventLoop();
		let readings = 0;
		loop.now = () => {
			readings += 1;
			return readings / 1_000;
		};
		const scheduler = new EventLoopScheduler(loop);
		for (let step = 0; step < 1_600; step++) {
			await scheduler.turn();
		}
		expect(readings).toBeLessThan(110);
	});
});

describe("the scheduler of the process", () => {
	it("lets the event loop run between the turns of a loop that never waits", async () => {
		let iterations = 0;
		let isOver = false;
		const count = () => {
			iterations += 1;
			if (!isOver) {
				setImmediate(count);
			}
		};
		setImmediate(count);
		while (iterations < 20) {
			await systemScheduler.turn();
		}
		isOver = true;
	});
});
