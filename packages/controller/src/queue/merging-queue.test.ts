import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MergingQueue } from "./merging-queue.ts";
import type { QueueEntry } from "./queue-entry.ts";
import { QueueModel } from "./queue-model.fixture.ts";

/** Why work fails. */
const down = new Error("the service is down");

const backoff = { baseMs: 5, maxMs: 1_000_000 };

function queueOf<Item>(merge?: (earlier: Item, later: Item) => Item, onReady = () => {}) {
	const clock = new FakeClock();
	const queue = new MergingQueue<Item>({
		clock,
		backoff,
		onReady,
		...(merge && { merge }),
	});
	return { clock, queue };
}

function taken<Item>(queue: MergingQueue<Item>): QueueEntry<Item> {
	const entry = queue.take();
	if (entry === undefined) {
		throw new Error("nothing is ready");
	}
	return entry;
}

describe("MergingQueue", () => {
	it("hands out a key once, with its latest item", () => {
		const { queue } = queueOf<string>();
		queue.add("a", "first", "live");
		queue.add("b", "other", "live");
		queue.add("a", "second", "live");
		expect(taken(queue)).toMatchObject({ key: "a", item: "second" });
		expect(taken(queue)).toMatchObject({ key: "b", item: "other" });
		expect(queue.take()).toBeUndefined();
	});

	it("does not hand out an active key again until it is done", () => {
		const { queue } = queueOf<string>();
		queue.add("a", "first", "live");
		const entry = taken(queue);
		queue.add("a", "second", "live");
		expect(queue.take()).toBeUndefined();
		queue.done(entry);
		expect(taken(queue)).toMatchObject({ key: "a", item: "second" });
	});

	it("doubles the delay with each failure, from 5 ms to 1000 s, until a success", () => {
		const { clock, queue } = queueOf<string>();
		queue.add("a", "item", "live");
		const delays: number[] = [];
		for (let failure = 0; failure < 20; failure++) {
			const delayMs = queue.fail(taken(queue), down);
			delays.push(delayMs);
			clock.advance(delayMs - 1);
			expect(queue.take()).toBeUndefined();
			clock.advance(1);
		}
		const doubled = Array.from({ length: 18 }, (_, at) => 5 * 2 ** at);
		expect(delays).toEqual([...doubled, 1_000_000, 1_000_000]);
		queue.done(taken(queue));
		queue.add("a", "item", "live");
		expect(queue.fail(taken(queue), down)).toBe(5);
	});

	it("ends a backoff early for a live item, but not the count of failures", () => {
		const { queue } = queueOf<string>();
		queue.add("a", "first", "live");
		queue.fail(taken(queue), down);
		queue.add("a", "second", "live");
		const entry = taken(queue);
		expect(entry.item).toBe("second");
		expect(queue.fail(entry, down)).toBe(10);
	});

	it("forgets failures when an item is to be repeated later", () => {
		const { clock, queue } = queueOf<string>();
		queue.add("a", "item", "live");
		queue.fail(taken(queue), down);
		clock.advance(5);
		queue.doneUntil(taken(queue), 30_000);
		clock.advance(29_999);
		expect(queue.take()).toBeUndefined();
		clock.advance(1);
		expect(queue.fail(taken(queue), down)).toBe(5);
	});

	it("keeps the sooner of two delays", () => {
		const { clock, queue } = queueOf<string>();
		queue.add("a", "item", "live", 100);
		queue.add("a", "item", "live", 40);
		queue.add("a", "item", "live", 70);
		clock.advance(40);
		expect(taken(queue).key).toBe("a");
		expect(queue.state().delayed).toBe(0);
	});

	it("holds delays longer than a platform timer", () => {
		const { clock, queue } = queueOf<string>();
		const year = 365 * 24 * 3600 * 1000;
		queue.add("a", "item", "live", year);
		clock.advance(year - 1);
		expect(queue.take()).toBeUndefined();
		clock.advance(1);
		expect(taken(queue).key).toBe("a");
	});

	it("sets one timer, however many delays there are", () => {
		let timers = 0;
		const clock = new FakeClock();
		const counting = {
			now: () => clock.now(),
			monotonic: () => clock.monotonic(),
			setTimer: (delayMs: number, callback: () => void) => {
				timers += 1;
				const timer = clock.setTimer(delayMs, () => {
					timers -= 1;
					callback();
				});
				return {
					cancel: () => {
						timers -= 1;
						timer.cancel();
					},
				};
			},
		};
		const queue = new MergingQueue<number>({ clock: counting, backoff, onReady: () => {} });
		for (let at = 0; at < 1000; at++) {
			queue.add(`k${at}`, at, "live", 1000 - at);
			expect(timers).toBe(1);
		}
		clock.advance(1000);
		expect(timers).toBe(0);
		expect(queue.state().live).toBe(1000);
	});

	it("takes live keys first, and one background key per fifteen of them", () => {
		const { queue } = queueOf<number>();
		queue.add("background", 0, "background");
		for (let at = 0; at < 30; at++) {
			queue.add(`live${at}`, at, "live");
		}
		const order = Array.from({ length: 31 }, () => taken(queue).key);
		expect(order.indexOf("background")).toBe(15);
	});

	it("announces a paused background key that is added live", () => {
		let announced = 0;
		const { queue } = queueOf<string>(undefined, () => {
			announced += 1;
		});
		queue.pauseBackground();
		queue.add("a", "item", "background");
		expect(queue.take()).toBeUndefined();
		const before = announced;
		queue.add("a", "item", "live");
		expect(announced).toBe(before + 1);
		expect(taken(queue).key).toBe("a");
	});

	it("promotes a background key that is added live", () => {
		const { queue } = queueOf<number>();
		queue.add("x", 0, "background");
		queue.add("y", 0, "background");
		queue.add("y", 1, "live");
		expect(taken(queue)).toMatchObject({ key: "y", item: 1 });
	});

	it("does not starve other keys under a flood of one", () => {
		const { queue } = queueOf<number>();
		queue.add("flood", 0, "live");
		const order: string[] = [];
		queue.add("other", 0, "live");
		for (let at = 0; at < 4; at++) {
			const entry = queue.take();
			queue.add("flood", at, "live");
			if (entry !== undefined) {
				order.push(entry.key);
				queue.done(entry);
			}
		}
		expect(order).toEqual(["flood", "other", "flood", "flood"]);
	});

	it("keeps a held key back until it is released, with what was added meanwhile", () => {
		const { queue } = queueOf<string>();
		queue.add("a", "first", "live");
		queue.hold(taken(queue));
		queue.add("a", "second", "live");
		expect(queue.take()).toBeUndefined();
		expect(queue.state()).toMatchObject({ held: 1, active: 0 });
		queue.release("a");
		expect(taken(queue)).toMatchObject({ key: "a", item: "second" });
	});

	it("reports how long the head has been waiting", () => {
		const { clock, queue } = queueOf<string>();
		queue.add("a", "item", "live");
		clock.advance(70);
		queue.add("b", "item", "live");
		clock.advance(30);
		expect(queue.state().oldest).toEqual({ key: "a", waitingMs: 100 });
		queue.take();
		expect(queue.state().oldest).toEqual({ key: "b", waitingMs: 30 });
		queue.take();
		expect(queue.state().oldest).toBeUndefined();
	});

	it("drops everything but what is active when it is closed", () => {
		const { clock, queue } = queueOf<string>();
		queue.add("active", "item", "live");
		const entry = taken(queue);
		queue.add("active", "item", "live");
		queue.add("ready", "item", "live");
		queue.add("delayed", "item", "live", 10);
		queue.close();
		queue.add("late", "item", "live");
		clock.advance(10);
		expect(queue.take()).toBeUndefined();
		expect(queue.size).toBe(1);
		queue.done(entry);
		expect(queue.size).toBe(0);
		expect(clock.nextTimerMs()).toBeUndefined();
	});

	const key = fc.constantFrom("a", "b", "c", "d", "e", "f");
	const priority = fc.constantFrom("live" as const, "background" as const);
	const pick = fc.nat(10);
	const command = fc.oneof(
		{
			weight: 5,
			arbitrary: fc.record({
				do: fc.constant("add" as const),
				key,
				item: fc.nat(1000),
				priority,
				delayMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40 })),
			}),
		},
		{ weight: 4, arbitrary: fc.record({ do: fc.constant("take" as const) }) },
		{ weight: 2, arbitrary: fc.record({ do: fc.constant("done" as const), pick }) },
		{
			weight: 1,
			arbitrary: fc.record({ do: fc.constant("again" as const), pick, delayMs: fc.nat(30) }),
		},
		{ weight: 2, arbitrary: fc.record({ do: fc.constant("fail" as const), pick }) },
		{ weight: 1, arbitrary: fc.record({ do: fc.constant("hold" as const), pick }) },
		{ weight: 2, arbitrary: fc.record({ do: fc.constant("release" as const), key }) },
		{
			weight: 2,
			arbitrary: fc.record({
				do: fc.constant("gather" as const),
				key,
				item: fc.nat(1000),
				priority,
			}),
		},
		{ weight: 1, arbitrary: fc.record({ do: fc.constantFrom("pause" as const, "resume") }) },
		{ weight: 1, arbitrary: fc.record({ do: fc.constant("drop" as const), key }) },
		{
			weight: 3,
			arbitrary: fc.record({ do: fc.constant("advance" as const), byMs: fc.nat(25) }),
		},
	);

	it("does what the naive model does, whatever happens in whatever order", () => {
		fc.assert(
			fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
				let mayTake = false;
				const { clock, queue } = queueOf<number>(Math.max, () => {
					mayTake = true;
				});
				const model = new QueueModel(backoff);
				const active: QueueEntry<number>[] = [];
				const activeAt = (at: number) => active.splice(at % Math.max(1, active.length), 1)[0];
				for (const step of commands) {
					switch (step.do) {
						case "add":
							queue.add(step.key, step.item, step.priority, step.delayMs);
							model.add(step.key, step.item, step.priority, step.delayMs);
							break;
						case "take": {
							const entry = queue.take();
							expect(entry && { key: entry.key, item: entry.item }).toEqual(model.take());
							if (entry === undefined) {
								mayTake = false;
							} else {
								active.push(entry);
							}
							break;
						}
						case "gather":
							expect(queue.gather(step.key, step.item, step.priority)).toBe(
								model.gather(step.key, step.item, step.priority),
							);
							break;
						case "pause":
							queue.pauseBackground();
							model.pauseBackground();
							break;
						case "resume":
							if (model.isBackgroundPaused) {
								queue.resumeBackground();
								model.resumeBackground();
							}
							break;
						case "drop": {
							const matches = (candidate: string) => candidate <= step.key;
							queue.drop(matches);
							model.drop(matches);
							break;
						}
						case "release":
							queue.release(step.key);
							model.release(step.key);
							break;
						case "advance":
							clock.advance(step.byMs);
							model.advance(step.byMs);
							break;
						default: {
							const entry = activeAt(step.pick);
							if (entry === undefined) {
								break;
							}
							if (step.do === "done") {
								queue.done(entry);
								model.done(entry.key);
							} else if (step.do === "again") {
								queue.doneUntil(entry, step.delayMs);
								model.done(entry.key, step.delayMs);
							} else if (step.do === "fail") {
								queue.fail(entry, down);
								model.fail(entry.key);
							} else {
								queue.hold(entry);
								model.hold(entry.key);
							}
						}
					}
					expect(queue.state()).toMatchObject(model.counts());
					expect(
						queue
							.failing(1_000)
							.map(({ key }) => key)
							.sort(),
					).toEqual(model.failing());
					// Who has found nothing to take is called when there is something.
					expect(mayTake || !model.canTake).toBe(true);
					const dueMs = model.nextDueMs();
					if (dueMs !== undefined) {
						expect(clock.nextTimerMs()).toBeLessThanOrEqual(dueMs - model.nowMs);
					}
				}
			}),
			{ numRuns: 2000 },
		);
	});
});
