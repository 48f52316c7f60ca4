import { FakeClock } from "@plinth/runtime/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { type Delivery, WatchDeliveries } from "./watch-deliveries.ts";

let clock: FakeClock;
/** Tasks of this iteration of the event loop, and those that begin the next one. */
let tasks: (() => void)[];
let later: (() => void)[];
let deliveries: WatchDeliveries;
let delivered: string[];

beforeEach(() => {
	clock = new FakeClock();
	tasks = [];
	later = [];
	delivered = [];
	const scheduler = {
		schedule: (task: () => void) => void tasks.push(task),
		scheduleAfterInput: (task: () => void) => void later.push(task),
		turn: () => undefined,
	};
	deliveries = new WatchDeliveries({ clock, scheduler }, { perIteration: 3 });
});

/** Ends an iteration of the event loop, begins the next one, and returns what was delivered in the first. */
function iterate(): readonly string[] {
	delivered = [];
	for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
		task();
	}
	const begun = delivered;
	delivered = [];
	for (const task of later.splice(0)) {
		task();
	}
	return begun;
}

function delivery(name: string): Delivery & { isOver: boolean } {
	return { isOver: false, deliver: () => void delivered.push(name) };
}

function add(...names: string[]): void {
	for (const name of names) {
		deliveries.add(delivery(name));
	}
}

describe("deliveries", () => {
	it("begin later, a limited number in each iteration, in the order in which they were added", () => {
		add("a", "b", "c", "d", "e");
		expect(delivered).toEqual([]);
		expect(iterate()).toEqual(["a", "b", "c"]);
		add("f", "g", "h");
		expect(iterate()).toEqual(["d", "e", "f"]);
		add("i");
		expect(iterate()).toEqual(["g", "h", "i"]);
		expect(iterate()).toEqual([]);
		add("j");
		expect(iterate()).toEqual(["j"]);
	});

	it("of all slices are made once each, whatever is added meanwhile", () => {
		const all: string[] = [];
		for (let round = 0; round < 200; round++) {
			const names = Array.from({ length: (round * 7) % 8 }, (_, at) => `${round}/${at}`);
			add(...names);
			const begun = iterate();
			expect(begun.length).toBeLessThanOrEqual(3);
			all.push(...begun);
			if (round % 50 === 49) {
				while (deliveries.takeLag().waiting > 0) {
					all.push(...iterate());
				}
				all.push(...iterate());
			}
		}
		expect(all).toHaveLength(new Set(all).size);
		expect(all.map((name) => name.split("/").map(Number))).toEqual(
			all
				.map((name) => name.split("/").map(Number))
				.toSorted(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d),
		);
		expect(all).toHaveLength(200 * 3.5);
	});

	it("that are over take no time of others, and learn of their turn", () => {
		add("a", "b", "c");
		const over = ["d", "e", "f", "g"].map(delivery);
		over.forEach((each) => {
			deliveries.add(each);
			each.isOver = true;
		});
		add("h", "i", "j");
		expect(iterate()).toEqual(["a", "b", "c"]);
		expect(delivered).toEqual(["d", "e", "f", "g"]);
		expect(iterate()).toEqual(["h", "i", "j"]);
	});
});

describe("the lag of deliveries", () => {
	it("is 0 while each iteration has room for all", () => {
		add("a", "b", "c");
		clock.advance(10);
		iterate();
		expect(deliveries.takeLag()).toEqual({ waiting: 0, longestMs: 0, behindMs: 0 });
	});

	it("tells how many wait, the longest wait since the last time, and for how long there was any", () => {
		add("a", "b", "c", "d", "e", "f", "g");
		clock.advance(10);
		expect(deliveries.takeLag()).toEqual({ waiting: 4, longestMs: 10, behindMs: 10 });
		iterate();
		expect(deliveries.takeLag()).toEqual({ waiting: 1, longestMs: 10, behindMs: 10 });
		clock.advance(5);
		iterate();
		expect(deliveries.takeLag()).toEqual({ waiting: 0, longestMs: 15, behindMs: 15 });
		clock.advance(100);
		iterate();
		expect(deliveries.takeLag()).toEqual({ waiting: 0, longestMs: 0, behindMs: 15 });
	});
});
