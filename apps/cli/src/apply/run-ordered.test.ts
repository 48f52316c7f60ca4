import { describe, expect, it } from "vitest";
import { runOrdered } from "./run-ordered.ts";

/** Runs tasks that end in the order in which they started, and returns that, with the most that ran at a time. */
async function run(
	dependencies: readonly (readonly number[])[],
	{ limit = 16, stopAfter = Number.POSITIVE_INFINITY } = {},
) {
	const started: number[] = [];
	const ended = new Set<number>();
	const unmet: string[] = [];
	let running = 0;
	let most = 0;
	await runOrdered(
		dependencies.map((each) => new Set(each)),
		{
			limit,
			isStopped: () => started.length >= stopAfter,
			run: async (position) => {
				started.push(position);
				unmet.push(
					...(dependencies[position] ?? [])
						.filter((dependency) => !ended.has(dependency))
						.map((dependency) => `${position} before ${dependency}`),
				);
				running += 1;
				most = Math.max(most, running);
				await new Promise((resolve) => setImmediate(resolve));
				running -= 1;
				ended.add(position);
			},
		},
	);
	return { started, unmet, most };
}

describe("runOrdered", () => {
	it("starts tasks without dependencies in order, as many at a time as the limit", async () => {
		const { started, most } = await run(
			Array.from({ length: 50 }, () => []),
			{ limit: 4 },
		);
		expect(started).toEqual([...Array(50).keys()]);
		expect(most).toBe(4);
	});

	it("starts a task when all that it depends on have ended", async () => {
		const { started, unmet } = await run([[2], [0, 3], [3], [], [1, 2]]);
		expect(unmet).toEqual([]);
		expect(started).toEqual([3, 2, 0, 1, 4]);
	});

	it("starts the lowest of a cycle when nothing else can start", async () => {
		// 0 waits for the cycle of 1, 2 and 3; 4 waits for nothing.
		const { started, unmet } = await run([[2], [3], [1], [2], []]);
		expect(started).toEqual([4, 1, 2, 0, 3]);
		expect(unmet).toEqual(["1 before 3"]);
	});

	it("ends with several cycles", async () => {
		const { started } = await run([[1], [0], [3], [2], [4]]);
		expect(started).toEqual([0, 1, 2, 3, 4]);
	});

	it("starts nothing more when it is stopped", async () => {
		const { started } = await run([[], [], [], [0], [5], [4]], { limit: 2, stopAfter: 3 });
		expect(started).toEqual([0, 1, 2]);
	});

	it("throws the error of a task after the others have ended", async () => {
		const ended: number[] = [];
		const all = runOrdered([new Set(), new Set(), new Set([0])], {
			limit: 2,
			isStopped: () => false,
			run: async (position) => {
				if (position === 0) {
					throw new Error("broken");
				}
				await new Promise((resolve) => setImmediate(resolve));
				ended.push(position);
			},
		});
		await expect(all).rejects.toThrow("broken");
		expect(ended).toEqual([1]);
	});
});
