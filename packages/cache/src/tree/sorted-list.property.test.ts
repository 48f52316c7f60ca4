import fc from "fast-check";
import { expect, it } from "vitest";
import { type Chunks, SortedList } from "./sorted-list.ts";

type Step =
	| {
			readonly kind: "add" | "remove";
			readonly from: number;
			readonly count: number;
			readonly stride: number;
	  }
	| { readonly kind: "replace"; readonly at: number }
	| { readonly kind: "share" };

const step: fc.Arbitrary<Step> = fc.oneof(
	{
		weight: 6,
		arbitrary: fc.record({
			kind: fc.constantFrom("add" as const, "remove" as const),
			from: fc.nat(3000),
			count: fc.nat(600),
			stride: fc.integer({ min: -3, max: 7 }),
		}),
	},
	{ weight: 2, arbitrary: fc.record({ kind: fc.constant("replace" as const), at: fc.nat(3000) }) },
	{ weight: 2, arbitrary: fc.record({ kind: fc.constant("share" as const) }) },
);

interface Item {
	readonly rank: number;
}

const before = (a: Item, b: Item) => a.rank < b.rank;

it("contains the items of an array, in order, and shared items do not change", () => {
	fc.assert(
		fc.property(fc.nat(1500), fc.array(step, { maxLength: 12 }), (initial, steps) => {
			const model = new Map(Array.from({ length: initial }, (_, i) => [i * 2, { rank: i * 2 }]));
			const list = new SortedList<Item>(before, [...model.values()]);
			const shared: { chunks: Chunks<Item>; items: Item[] }[] = [];
			for (const step of steps) {
				run(step, list, model, shared);
				const expected = sorted(model);
				expect(list.size).toBe(expected.length);
				expect(same(list.chunks, expected)).toBe(true);
				expect(list.chunks.every(({ length }) => length > 0 && length <= 256)).toBe(true);
				expect(list.first).toBe(expected[0]);
			}
			for (const { chunks, items } of shared) {
				expect(same(chunks, items)).toBe(true);
			}
		}),
		{ numRuns: 250 },
	);
});

function run(
	step: Step,
	list: SortedList<Item>,
	model: Map<number, Item>,
	shared: { chunks: Chunks<Item>; items: Item[] }[],
): void {
	if (step.kind === "share") {
		shared.push({ chunks: list.share(), items: sorted(model) });
		return;
	}
	if (step.kind === "replace") {
		const item = model.get(step.at);
		if (item !== undefined) {
			const by = { rank: item.rank };
			list.replace(item, by);
			model.set(step.at, by);
		}
		return;
	}
	for (let i = 0; i < step.count; i++) {
		const rank = step.from + i * (step.stride || 1);
		const item = model.get(rank);
		if (step.kind === "add" && item === undefined) {
			const added = { rank };
			list.add(added);
			model.set(rank, added);
		} else if (step.kind === "remove" && item !== undefined) {
			list.remove(item);
			model.delete(rank);
		}
	}
}

function sorted(model: ReadonlyMap<number, Item>): Item[] {
	return [...model.values()].sort((a, b) => a.rank - b.rank);
}

function same(chunks: Chunks<Item>, items: readonly Item[]): boolean {
	const flat = chunks.flat();
	return flat.length === items.length && flat.every((item, i) => item === items[i]);
}
