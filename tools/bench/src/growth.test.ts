import { afterEach, expect, it, vi } from "vitest";
import { GrowthTable } from "./growth.ts";

afterEach(() => {
	vi.restoreAllMocks();
});

it("a table of growth has the figure of each size, and the ratio of the largest to the smallest", async () => {
	const sizes: number[] = [];
	const table = new GrowthTable("Reads of a map", "µs per read");
	await table.measure(
		"read",
		10,
		(size) => {
			sizes.push(size);
			return sizes.length === 1 ? 99_999 : size / 2;
		},
		{ rounds: 2 },
	);
	const log = vi.spyOn(console, "log").mockImplementation(() => {});
	table.print();
	// The first run does not count; the sizes take turns.
	expect(sizes).toEqual([10, 10, 100, 1000, 10, 100, 1000]);
	expect(log.mock.calls.map(([line]) => `${line}`)).toEqual([
		"\nReads of a map, µs per read\n",
		"       N  at N  at 10 N  at 100 N         100 N ÷ N",
		"----  --  ----  -------  --------  ----------------",
		"read  10  5.00     50.0       500  100 (100 to 100)",
	]);
});
