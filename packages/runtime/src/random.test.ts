import { describe, expect, it } from "vitest";
import { systemRandom } from "./random.ts";
import { seededRandom } from "./testing/index.ts";

describe.each([
	["systemRandom", () => systemRandom],
	["seededRandom", () => seededRandom(7)],
])("%s", (_, make) => {
	it("is spread over [0, 1)", () => {
		const random = make();
		const buckets = new Array<number>(10).fill(0);
		for (let draw = 0; draw < 10_000; draw += 1) {
			const value = random.next();
			expect(value >= 0 && value < 1).toBe(true);
			const bucket = Math.floor(value * 10);
			buckets[bucket] = (buckets[bucket] ?? 0) + 1;
		}
		// Ten standard deviations: a fair source fails once in more runs than anyone will start.
		expect(Math.min(...buckets)).toBeGreaterThan(700);
		expect(Math.max(...buckets)).toBeLessThan(1300);
	});
});

describe("seededRandom", () => {
	const draw = (seed: number) => {
		const random = seededRandom(seed);
		return [random.next(), random.next(), random.next()];
	};

	it("replays a seed, and differs between neighboring ones", () => {
		expect(draw(1)).toEqual(draw(1));
		expect(draw(1)).not.toEqual(draw(2));
		expect(draw(0)).not.toEqual(draw(-1));
	});
});
