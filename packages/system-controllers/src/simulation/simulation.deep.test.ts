import { SeededEventLoop } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

it("two servers that lag behind remove units only when they are empty, and all that are marked", async () => {
	let removed = 0;
	await forEachSeed(40, async (seed) => {
		const result = await simulate(seed);
		expect(result.violations).toEqual([]);
		removed += result.removed;
	});
	console.log(`removed ${removed} namespaces and partitions`);
});

it("two servers that lag behind leave nothing that a deleted resource owned", async () => {
	let removed = 0;
	await forEachSeed(40, async (seed) => {
		const result = await simulate(seed, { users: "owners" });
		expect(result.violations).toEqual([]);
		removed += result.removedTombstones;
	});
	console.log(`removed ${removed} tombstones of owners`);
});

it("two servers do both beside loops that never wait, a hot resource and many watchers", () =>
	forEachSeed(16, async (seed) => {
		const users = seed % 2 === 0 ? "owners" : "tenants";
		const { violations, longestMs } = await simulate(seed, { users, crowd: {} });
		expect(violations).toEqual([]);
		expect(longestMs).toBeLessThan(SeededEventLoop.longestAllowedMs);
	}));
