import { afterEach, describe, expect, it, vi } from "vitest";
import { ComparisonTable, interleave, interleaveSteps } from "./comparison.ts";

describe("interleave", () => {
	it("runs contenders in turn, each as the first one equally often", async () => {
		const order: string[] = [];
		const contender = (name: string) => () => order.push(name);
		await interleave({ a: contender("a"), b: contender("b") }, { rounds: 4, warmUpRounds: 0 });
		expect(order.join("")).toBe("abbaabba");
	});

	it("returns the figures of each round but those that warm up", async () => {
		let next = 0;
		const figures = await interleave({ only: async () => next++ }, { rounds: 3, warmUpRounds: 2 });
		expect(figures).toEqual({ only: [2, 3, 4] });
	});
});

describe("interleaveSteps", () => {
	it("makes contenders once a round, and runs each step of all of them before the next step", async () => {
		const order: string[] = [];
		const contender = (name: string) => () => {
			order.push(`make ${name}`);
			return { fill: () => order.push(`fill ${name}`), read: () => order.push(`read ${name}`) };
		};
		const figures = await interleaveSteps(
			{ a: contender("a"), b: contender("b") },
			{ rounds: 2, warmUpRounds: 0 },
		);
		expect(order).toEqual([
			...["make a", "make b", "fill a", "fill b", "read a", "read b"],
			...["make a", "make b", "fill b", "fill a", "read b", "read a"],
		]);
		expect(figures).toEqual({
			fill: { a: [3, 10], b: [4, 9] },
			read: { a: [5, 12], b: [6, 11] },
		});
	});

	it("skips a step that a contender does not have", async () => {
		const figures = await interleaveSteps(
			{ a: () => ({ read: () => 1, list: () => 2 }), b: () => ({ read: () => 3 }) },
			{ rounds: 1, warmUpRounds: 0 },
		);
		expect(figures).toEqual({ read: { a: [1], b: [3] }, list: { a: [2] } });
	});
});

describe("a table of comparisons", () => {
	afterEach(() => {
		vi.restoreAllMocks();
	});

	function printed(table: ComparisonTable): readonly string[] {
		const log = vi.spyOn(console, "log").mockImplementation(() => {});
		table.print();
		return log.mock.calls.map(([line]) => `${line}`);
	}

	it("has the median of each contender, and the ratio to the first with its quartiles", () => {
		const table = new ComparisonTable("Calls", "µs");
		table.add("read", { ours: [10, 20, 30], theirs: [10, 10, 10] });
		expect(printed(table)).toEqual([
			"\nCalls\n",
			"      ours µs  theirs µs             ÷ theirs",
			"----  -------  ---------  -------------------",
			"read     20.0       10.0  2.00 (1.50 to 2.50)",
		]);
	});

	it("has the ratio of each contender to the baseline, if there is one", () => {
		const table = new ComparisonTable("Calls", "µs", { baseline: "floor" });
		table.add("read", { ours: [20, 40], theirs: [30, 60], floor: [10, 10] });
		expect(printed(table)).toEqual([
			"\nCalls\n",
			"      ours µs  theirs µs  floor µs         ours ÷ floor       theirs ÷ floor",
			"----  -------  ---------  --------  -------------------  -------------------",
			"read     30.0       45.0      10.0  3.00 (2.50 to 3.50)  4.50 (3.75 to 5.25)",
		]);
	});

	it("compares figures of the same round, so that a slow moment of the machine cancels out", () => {
		const table = new ComparisonTable("Calls", "µs");
		table.add("read", { ours: [20, 2_000, 20], theirs: [10, 1_000, 10] }, { note: "ok" });
		expect(printed(table).at(-1)).toContain("2.00 (2.00 to 2.00)    ok");
	});
});
