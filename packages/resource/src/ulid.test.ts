import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { isUlid, newUlid } from "./ulid.ts";

it("creates the ULID of the library for the same time and random numbers", async () => {
	await forEachSeed(20, async (seed) => {
		const times = seededRandom(seed);
		const [random, same] = [seededRandom(seed + 1), seededRandom(seed + 1)];
		for (let index = 0; index < 50; index++) {
			const nowMs = 1 + times.next() * 2 ** (times.next() * 47);
			const clock = Object.assign(new FakeClock(), { now: () => nowMs });
			const id = newUlid({ clock, random });
			expect(id).toBe(ulid(Math.floor(nowMs), () => same.next()));
			expect(isUlid(id)).toBe(true);
		}
	});
});
