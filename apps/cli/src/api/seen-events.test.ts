import { describe, expect, it } from "vitest";
import { SeenEvents } from "./seen-events.ts";

const event = (number: number, count = 1n) => ({ id: String(number), count });

describe("events that were seen", () => {
	it("are left out, unless they have occurred again", () => {
		const seen = new SeenEvents();
		expect(seen.add([event(1), event(2)])).toEqual([event(1), event(2)]);
		expect(seen.add([event(1), event(2, 2n), event(3)])).toEqual([event(2, 2n), event(3)]);
		expect(seen.add([event(2, 2n)])).toEqual([]);
	});

	it("are forgotten once 10,000 newer ones were seen", () => {
		const seen = new SeenEvents();
		seen.add([event(0), event(1)]);
		seen.add([event(0, 2n)]);
		seen.add(Array.from({ length: 9_999 }, (_, index) => event(index + 2)));
		expect(seen.add([event(0, 2n), event(2), event(10_000)])).toEqual([]);
		expect(seen.add([event(1)])).toEqual([event(1)]);
		expect(seen.add([event(0, 2n)])).toEqual([event(0, 2n)]);
	});
});
