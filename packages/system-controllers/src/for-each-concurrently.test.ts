import { expect, it } from "vitest";
import { forEachConcurrently } from "./for-each-concurrently.ts";

it("processes every item, and then throws the first failure", async () => {
	const processed: number[] = [];
	const items = Array.from({ length: 50 }, (_, at) => at);
	const all = forEachConcurrently(items, 4, async (item) => {
		processed.push(item);
		if (item < 20) {
			throw new Error(`no ${item}`);
		}
	});
	await expect(all).rejects.toThrow("no 0");
	expect(processed.sort((a, b) => a - b)).toEqual(items);
});

it("limits the concurrency", async () => {
	let running = 0;
	let most = 0;
	await forEachConcurrently([1, 2, 3, 4, 5, 6, 7], 3, async () => {
		running += 1;
		most = Math.max(most, running);
		await new Promise((resolve) => setImmediate(resolve));
		running -= 1;
	});
	expect(most).toBe(3);
});
