import { describe, expect, it } from "vitest";
import { sleep } from "../clock.ts";
import { SeededScheduler } from "./seeded-scheduler.ts";

/** What three workers print who take turns, and one who waits for time. */
async function traceOf(seed: number): Promise<string> {
	const scheduler = new SeededScheduler({ seed });
	const trace: string[] = [];
	const worker = async (name: string) => {
		for (let line = 0; line < 4; line++) {
			await scheduler.pause();
			trace.push(`${name}${line}`);
		}
	};
	const late = async () => {
		await sleep(scheduler.clock, 1_000);
		trace.push(`at ${scheduler.clock.monotonic()}`);
	};
	await scheduler.run(Promise.all([worker("a"), worker("b"), worker("c"), late()]));
	return trace.join(" ");
}

describe("SeededScheduler", () => {
	it("makes a share of the turns of loops wait, the same ones for a seed", async () => {
		const waitedOf = async (waitingTurns: number) => {
			const scheduler = new SeededScheduler({ seed: 7, waitingTurns });
			let waited = 0;
			const loop = async () => {
				for (let step = 0; step < 100; step++) {
					const turn = scheduler.turn();
					waited += turn === undefined ? 0 : 1;
					await turn;
				}
			};
			await scheduler.run(loop());
			return waited;
		};
		expect(await waitedOf(0)).toBe(0);
		expect(await waitedOf(1)).toBe(100);
		const some = await waitedOf(0.3);
		expect(some).toBeGreaterThan(10);
		expect(some).toBeLessThan(60);
		expect(await waitedOf(0.3)).toBe(some);
	});

	it("runs the same seed in the same order, and other seeds in others", async () => {
		const traces = new Set<string>();
		for (let seed = 1; seed <= 20; seed++) {
			const trace = await traceOf(seed);
			expect(await traceOf(seed)).toBe(trace);
			traces.add(trace);
		}
		expect(traces.size).toBe(20);
	});

	it("draws the next task only when no promise can settle without another task", async () => {
		const scheduler = new SeededScheduler({ seed: 1 });
		const order: string[] = [];
		for (const name of ["a", "b", "c"]) {
			scheduler.schedule(async () => {
				order.push(`${name} begins`);
				for (let turn = 0; turn < 100; turn++) {
					await undefined;
				}
				order.push(`${name} ends`);
			});
		}
		await scheduler.drain();
		const pairs = [0, 2, 4].map((at) => order.slice(at, at + 2).map((line) => line[0]));
		expect(pairs.every(([first, second]) => first === second)).toBe(true);
	});

	it("continues code that waits for a iteration of the event loop", async () => {
		const scheduler = new SeededScheduler({ seed: 1 });
		let ran = false;
		scheduler.schedule(() => {
			setImmediate(() => {
				scheduler.schedule(() => {
					ran = true;
				});
			});
		});
		await scheduler.drain();
		expect(ran).toBe(true);
	});

	it("moves the clock only when nothing else is left to run", async () => {
		const scheduler = new SeededScheduler({ seed: 3 });
		const { clock } = scheduler;
		const slept = sleep(clock, 500);
		let turns = 0;
		const takeTurns = async () => {
			while (turns < 100) {
				await scheduler.pause();
				turns += 1;
				expect(clock.monotonic()).toBe(0);
			}
		};
		await scheduler.run(Promise.all([slept, takeTurns()]));
		expect(clock.monotonic()).toBe(500);
	});

	it("advances by exactly that much time, and runs what comes due", async () => {
		const scheduler = new SeededScheduler({ seed: 3 });
		const { clock } = scheduler;
		const woke: number[] = [];
		const wake = async () => {
			for (;;) {
				await sleep(clock, 300);
				woke.push(clock.monotonic());
			}
		};
		void wake();
		await scheduler.advance(1_000);
		expect(woke).toEqual([300, 600, 900]);
		expect(clock.monotonic()).toBe(1_000);
	});

	it("draws the order of timers that come due at once, and calls none that was canceled", async () => {
		const orders = new Set<string>();
		for (let seed = 0; seed < 20; seed++) {
			const scheduler = new SeededScheduler({ seed });
			const fired: string[] = [];
			const second = scheduler.clock.setTimer(10, () => fired.push("second"));
			scheduler.clock.setTimer(10, () => {
				fired.push("first");
				second.cancel();
			});
			await scheduler.advance(10);
			orders.add(fired.join());
		}
		expect([...orders].sort()).toEqual(["first", "second,first"]);
	});

	it("interleaves overlapping calls", async () => {
		const scheduler = new SeededScheduler({ seed: 5 });
		const work = async () => {
			await scheduler.pause();
			await sleep(scheduler.clock, 10);
			return scheduler.clock.monotonic();
		};
		const calls = [scheduler.run(work()), scheduler.run(work()), scheduler.drain()];
		expect(await Promise.all(calls)).toEqual([10, 10, undefined]);
	});

	it("leaves a promise pending that waits for time or input", async () => {
		const scheduler = new SeededScheduler({ seed: 5 });
		const input = Promise.withResolvers<string>();
		const driven = scheduler.drive(input.promise);
		await scheduler.drain();
		input.resolve("there");
		expect(await driven).toBe("there");
	});

	it("waits until a condition holds with no task left", async () => {
		const scheduler = new SeededScheduler({ seed: 5 });
		let steps = 0;
		const work = async () => {
			while (steps < 5) {
				await sleep(scheduler.clock, 10);
				steps += 1;
			}
		};
		void work();
		await scheduler.until(() => steps === 5);
		expect(scheduler.clock.monotonic()).toBe(50);
	});

	it("rejects with the reason of the promise", async () => {
		const scheduler = new SeededScheduler({ seed: 5 });
		const failing = async () => {
			await scheduler.pause();
			throw new Error("no");
		};
		await expect(scheduler.run(failing())).rejects.toThrow("no");
	});

	it("names the seed in the error if nothing can run, time runs out, or the steps never end", async () => {
		const stuck = new SeededScheduler({ seed: 17 });
		await expect(stuck.run(new Promise(() => {}))).rejects.toThrow(
			"seed 17: nothing is left to run, no timer is set",
		);
		const tick = () => {
			stuck.clock.setTimer(100, tick);
		};
		tick();
		await expect(
			stuck.until(() => false, { limitMs: 1_000, describe: () => "no one came" }),
		).rejects.toThrow(
			"seed 17: 1000 ms have passed, and the condition still does not hold: no one came",
		);
		const circling = new SeededScheduler({ seed: 17, maxSteps: 50 });
		const again = () => circling.schedule(again);
		again();
		await expect(circling.drain()).rejects.toThrow("seed 17: 50 steps with tasks left to run");
		await expect(circling.advance(10)).rejects.toThrow("seed 17: 50 steps before 10 ms had passed");
		await expect(circling.run(new Promise(() => {}))).rejects.toThrow("seed 17: 50 steps");
	});
});
