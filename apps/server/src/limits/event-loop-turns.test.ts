import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLoopTurns, healthChecks, type TurnTaker, unidentified } from "./event-loop-turns.ts";

const { signal: never } = new AbortController();
const loopRound = () => new Promise((resolve) => setImmediate(resolve));
const taker = (caller: string, connection: object = connectionOf(caller)): TurnTaker => ({
	caller,
	connection,
});
const connections = new Map<string, object>();
function connectionOf(caller: string): object {
	const known = connections.get(caller) ?? {};
	connections.set(caller, known);
	return known;
}

async function until(isDone: () => boolean): Promise<void> {
	while (!isDone()) {
		await loopRound();
	}
}

/** Something that lets calls run in some order. */
type Turns = Pick<EventLoopTurns, "run">;

/** A caller with calls that are all there at the start, and what each of them takes. */
interface Load {
	readonly caller: string;
	readonly costsMs: readonly number[];
}

/**
 * Runs all calls, and returns by how much one caller got ahead of another at most while both had calls that
 * waited, beyond one turn of each.
 */
async function unfairnessMs(
	clock: FakeClock,
	turns: Turns,
	loads: readonly Load[],
): Promise<number> {
	const usedMs = new Map(loads.map(({ caller }) => [caller, 0]));
	const left = new Map(loads.map(({ caller, costsMs }) => [caller, costsMs.length]));
	const largest = new Map(loads.map(({ caller, costsMs }) => [caller, Math.max(...costsMs)]));
	let unfairMs = 0;
	const compare = () => {
		const waiting = loads.map(({ caller }) => caller).filter((caller) => left.get(caller) !== 0);
		for (const a of waiting) {
			for (const b of waiting) {
				const aheadMs = (usedMs.get(a) ?? 0) - (usedMs.get(b) ?? 0);
				unfairMs = Math.max(unfairMs, aheadMs - (largest.get(a) ?? 0) - (largest.get(b) ?? 0));
			}
		}
	};
	let running = 0;
	// A first call, so that all others have to wait.
	turns.run(taker("first"), () => clock.advance(6));
	for (const { caller, costsMs } of loads) {
		for (const costMs of costsMs) {
			running += 1;
			turns.run(taker(caller), () => {
				// Most of a call runs in microtasks.
				clock.advance(costMs / 2);
				void Promise.resolve()
					.then(() => {})
					.then(() => {
						clock.advance(costMs / 2);
						usedMs.set(caller, (usedMs.get(caller) ?? 0) + costMs);
						left.set(caller, (left.get(caller) ?? 0) - 1);
						running -= 1;
						compare();
					});
			});
		}
	}
	await until(() => running === 0);
	return unfairMs;
}

const loadsArbitrary = fc
	.array(fc.array(fc.double({ min: 0.1, max: 15, noNaN: true }), { minLength: 1, maxLength: 40 }), {
		minLength: 2,
		maxLength: 5,
	})
	.map((all) => all.map((costsMs, index) => ({ caller: `caller-${index}`, costsMs })));

describe("turns on the event loop", () => {
	it("are shared evenly between callers, whatever their calls take", async () => {
		await fc.assert(
			fc.asyncProperty(loadsArbitrary, async (loads) => {
				const clock = new FakeClock();
				const unfairMs = await unfairnessMs(clock, new EventLoopTurns(clock), loads);
				expect(unfairMs).toBeLessThan(1e-6);
			}),
			{ numRuns: 100 },
		);
	});

	it("would be found to be unfair in the order in which calls arrive, or one call of each in turn", async () => {
		const inOrder = (): Turns => {
			const waiting: (() => void)[] = [];
			return {
				run: (_taker, proceed) => {
					waiting.push(proceed);
					setImmediate(() => waiting.shift()?.());
				},
			};
		};
		const inTurn = (): Turns => {
			const waiting = new Map<TurnTaker["caller"], (() => void)[]>();
			return {
				run: ({ caller }, proceed) => {
					const calls = waiting.get(caller) ?? [];
					calls.push(proceed);
					waiting.set(caller, calls);
					setImmediate(() => {
						for (const [key, queue] of waiting) {
							const next = queue.shift();
							waiting.delete(key);
							if (queue.length > 0) {
								waiting.set(key, queue);
							}
							next?.();
							return;
						}
					});
				},
			};
		};
		for (const faulty of [inOrder, inTurn]) {
			const { failed } = await fc.check(
				fc.asyncProperty(
					loadsArbitrary,
					async (loads) => (await unfairnessMs(new FakeClock(), faulty(), loads)) < 1e-6,
				),
				{ seed: 1, numRuns: 1_000, endOnFailure: true },
			);
			expect(failed).toBe(true);
		}
	});

	it("begin when the one before has ended, and in the order in which calls arrive", async () => {
		const turns = new EventLoopTurns(new FakeClock());
		const order: number[] = [];
		for (let call = 0; call < 200; call += 1) {
			turns.run(taker("a"), () => order.push(call));
		}
		expect(order).toEqual([0]);
		await until(() => order.length === 200);
		expect(order).toEqual(order.toSorted((a, b) => a - b));
	});

	it("are charged one by one to calls that come in one tick", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		const order: string[] = [];
		const call = async (caller: string, costMs: number) => {
			await turns.take(taker(caller), never);
			clock.advance(costMs);
			order.push(caller);
		};
		// All are there before any of them has run, and the last one takes nothing.
		await Promise.all([call("many", 10), call("many", 10), call("innocent", 0)]);
		expect(order).toEqual(["many", "innocent", "many"]);
		turns.run(taker("first"), () => clock.advance(6));
		await Promise.all([call("many", 1), call("innocent", 1)]);
		expect(order.slice(3)).toEqual(["innocent", "many"]);
	});

	it("are shared evenly between the connections of a caller", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		const order: string[] = [];
		turns.run(taker("a"), () => clock.advance(6));
		const run = (connection: string) =>
			turns.run(taker("a", connectionOf(connection)), () => order.push(connection));
		for (let call = 0; call < 3; call += 1) {
			run("many");
		}
		run("one");
		await until(() => order.length === 4);
		expect(order).toEqual(["many", "one", "many", "many"]);
	});

	it("leave half of the time to others after slow ones", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		let slow = 0;
		let quick = 0;
		const run = (caller: string, costMs: number, count: () => void) =>
			turns.run(taker(caller), () => {
				clock.advance(costMs);
				count();
			});
		run("slow", 100, () => (slow += 1));
		run("slow", 100, () => (slow += 1));
		run("quick", 1, () => (quick += 1));
		await until(() => quick === 1);
		await loopRound();
		expect(slow).toBe(1);
		clock.advance(98);
		await loopRound();
		run("quick", 0, () => (quick += 1));
		await until(() => quick === 2);
		expect(slow).toBe(1);
		clock.advance(1);
		await until(() => slow === 2);
	});

	it("are paused for a caller's own slow turns, and not for those of others", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		const order: string[] = [];
		const run = (caller: string, costMs: number) =>
			turns.run(taker(caller), () => {
				clock.advance(costMs);
				order.push(caller);
			});
		run("a", 25);
		await until(() => order.length === 1);
		run("b", 500);
		await until(() => order.length === 2);
		// The pause of 25 ms is long over, the other one is not.
		run("b", 500);
		run("a", 25);
		await until(() => order.length === 3);
		await loopRound();
		expect(order).toEqual(["a", "b", "a"]);
		clock.advance(475);
		await until(() => order.length === 4);
	});

	it.each([
		["unidentified callers", unidentified],
		["health checks", healthChecks],
	])("of %s make no other caller pause", async (_name, caller) => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		let ran = 0;
		for (let call = 0; call < 5; call += 1) {
			turns.run(taker("slow"), () => {
				clock.advance(100);
				ran += 1;
			});
			turns.run({ caller, connection: {} }, () => {
				clock.advance(2);
				ran += 1;
			});
		}
		await until(() => ran === 10);
		expect(clock.monotonic()).toBe(510);
	});

	it("follow each other without a pause if there is only one caller", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		let ran = 0;
		for (let call = 0; call < 3; call += 1) {
			turns.run(taker("alone"), () => {
				clock.advance(100);
				ran += 1;
			});
		}
		await until(() => ran === 3);
		expect(clock.monotonic()).toBe(300);
	});

	it("are taken by calls that have begun before requests that arrive", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		const order: string[] = [];
		turns.run(taker("a"), () => clock.advance(6));
		turns.run(taker("a"), () => order.push("arrived"));
		const begun = turns.take(taker("a"), never)?.then(() => order.push("begun"));
		await begun;
		await until(() => order.length === 2);
		expect(order).toEqual(["begun", "arrived"]);
	});

	it("are one for a request that is there as a whole, and two for one whose end comes later", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		const log: string[] = [];
		turns.run(taker("first"), () => log.push("first"));
		turns.run(taker("a"), () => {
			log.push("a starts");
			turns.continue(taker("a"), () => log.push("a continues"));
			// Another call of the same caller is not part of this turn.
			turns.continue(taker("a"), () => log.push("another of a continues"));
		});
		turns.run(taker("b"), () => {
			log.push("b starts");
			// The token of the request is that of somebody else.
			turns.continue(taker("c"), () => log.push("c continues"));
		});
		turns.run(taker("d"), () => {
			log.push("d starts");
			void Promise.resolve().then(() => turns.continue(taker("d"), () => log.push("d continues")));
		});
		await until(() => log.length === 8);
		expect(log).toEqual([
			"first",
			...["a starts", "a continues"],
			"b starts",
			"d starts",
			...["another of a continues", "c continues", "d continues"],
		]);
	});

	it("are not taken by calls that have ended", async () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		turns.run(taker("a"), () => clock.advance(6));
		const call = new AbortController();
		const ended = turns.take(taker("a"), call.signal);
		const next = turns.take(taker("a"), never);
		let begun = 0;
		const leave = turns.run(taker("a"), () => (begun += 1));
		expect(turns.waiting).toBe(3);
		leave?.();
		leave?.();
		expect(turns.waiting).toBe(2);
		call.abort(new Error("reset"));
		expect(turns.waiting).toBe(1);
		await expect(ended).rejects.toThrow("reset");
		await next;
		expect(turns.waiting).toBe(0);
		expect(() => turns.take(taker("a"), call.signal)).toThrow("reset");
		await loopRound();
		expect(begun).toBe(0);
	});

	it("are crowded for connections that have their share of what waits, and for no others", () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		turns.run(taker("first"), () => clock.advance(6));
		const many = taker("a", connectionOf("many"));
		for (let call = 0; call < 100; call += 1) {
			expect(turns.isCrowded(many, 100, 1_000)).toBe(false);
			turns.run(many, () => {});
		}
		expect(turns.isCrowded(many, 100, 1_000)).toBe(true);
		const one = taker("a", connectionOf("one"));
		expect(turns.isCrowded(one, 100, 1_000)).toBe(false);
		expect(turns.isCrowded(taker("b"), 100, 1_000)).toBe(false);
	});

	it("are crowded in all for connections that have their share of all that waits", () => {
		const clock = new FakeClock();
		const turns = new EventLoopTurns(clock);
		turns.run(taker("first"), () => clock.advance(6));
		const callers = Array.from({ length: 100 }, (_, index) => taker(`${index}`, {}));
		for (let call = 0; call < 20; call += 1) {
			for (const each of callers) {
				if (!turns.isCrowded(each, 1_000, 400)) {
					turns.run(each, () => {});
				}
			}
		}
		expect(turns.waiting).toBe(400);
		expect(turns.isCrowded(taker("new", {}), 1_000, 400)).toBe(false);
	});

	it("forget callers that do not wait", async () => {
		const turns = new EventLoopTurns(new FakeClock());
		let ran = 0;
		for (let caller = 0; caller < 5_000; caller += 1) {
			turns.run(taker(`${caller}`, {}), () => (ran += 1));
			if (caller % 40 === 0) {
				await loopRound();
			}
		}
		await until(() => ran === 5_000);
		expect(turns.callers).toBeLessThanOrEqual(1_000);
	});
});
