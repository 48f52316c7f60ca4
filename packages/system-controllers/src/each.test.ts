import { expect, it } from "vitest";
import { each } from "./each.ts";

it("tries every item, however many fail, and then throws the first failure", async () => {
	const tried: number[] = [];
	const items = Array.from({ length: 50 }, (_, at) => at);
	const all = each(items, 4, async (item) => {
		tried.push(item);
		if (item < 20) {
			throw new Error(`no ${item}`);
		}
	});
	await expect(all).rejects.toThrow("no 0");
	expect(tried.sort((a, b) => a - b)).toEqual(items);
});

it("runs no more at once than it is told", async () => {
	let running = 0;
	let most = 0;
	await each([1, 2, 3, 4, 5, 6, 7], 3, async () => {
		running += 1;
		most = Math.max(most, running);
		await new Promise((resolve) => setImmediate(resolve));
		running -= 1;
	});
	expect(most).toBe(3);
});
