import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LiveChange } from "../live/live-list.ts";
import { ResourceRow, rowFormat } from "./resource-row.ts";
import { keyOf, knownTypes, namespaceOf, namespaceType } from "./row.fixture.ts";
import { compareRows, defaultOrder, type RowOrder, type SortColumn } from "./row-order.ts";
import { SortedRows } from "./sorted-rows.ts";

const format = rowFormat(namespaceType, knownTypes);

function upsert(
	name: string,
	description: string,
	kind: "present" | "changed" = "present",
): LiveChange {
	return { kind, key: keyOf(name), resource: namespaceOf(name, description) };
}

function all(rows: SortedRows): readonly ResourceRow[] {
	return rows.window(0, rows.total);
}

function shown(rows: SortedRows): readonly string[] {
	return all(rows).map((row) => `${row.name} ${row.cells.join()}`);
}

describe("SortedRows", () => {
	it("sorts by name, and shows the columns of the type", () => {
		const rows = new SortedRows(format);
		rows.apply([upsert("b", "second"), upsert("a", "first")], 0);
		expect(shown(rows)).toEqual(["a first", "b second"]);
	});

	it("has the newest state of each resource, and none that was deleted", () => {
		const rows = new SortedRows(format);
		rows.apply([upsert("a", "1"), upsert("b", "1"), upsert("a", "2")], 0);
		rows.apply([{ kind: "deleted", key: keyOf("b") }], 0);
		expect(shown(rows)).toEqual(["a 2"]);
		rows.apply([upsert("b", "3"), { kind: "deleted", key: keyOf("b") }], 0);
		expect(rows.total).toBe(1);
	});

	it("sorts numbers as numbers", () => {
		const rows = new SortedRows(format);
		rows.apply([upsert("a", "10"), upsert("b", "9"), upsert("c", "x"), upsert("d", "-1.5")], 0);
		rows.sort({ by: 0, isDescending: false });
		expect(shown(rows)).toEqual(["d -1.5", "b 9", "a 10", "c x"]);
		rows.sort({ by: 0, isDescending: true });
		expect(shown(rows)).toEqual(["c x", "a 10", "b 9", "d -1.5"]);
	});

	it("shows the rows that contain all words, also those that change", () => {
		const rows = new SortedRows(format);
		rows.apply([upsert("a", "Red apple"), upsert("b", "green apple")], 0);
		rows.filter(" APPLE  red ");
		expect(shown(rows)).toEqual(["a Red apple"]);
		rows.apply([upsert("b", "red apple", "changed"), upsert("a", "pear", "changed")], 0);
		expect(shown(rows)).toEqual(["b red apple"]);
		expect([rows.matching, rows.total]).toEqual([1, 2]);
		rows.filter("");
		expect(rows.matching).toBe(2);
	});

	it("says when a row changed, unless it was there when the list was opened", () => {
		const rows = new SortedRows(format);
		rows.apply([upsert("a", "1"), upsert("b", "1", "changed")], 7);
		expect(all(rows).map(({ changedMs }) => changedMs)).toEqual([undefined, 7]);
	});

	it("has windows of its rows, each row with an id of its own", () => {
		const rows = new SortedRows(format);
		rows.apply(
			["a", "b", "c", "d"].map((each) => upsert(each, "")),
			0,
		);
		expect(rows.window(1, 2).map((row) => row.name)).toEqual(["b", "c"]);
		expect(rows.window(3, 9).map((row) => row.name)).toEqual(["d"]);
		expect(rows.window(4, 9)).toEqual([]);
		const [before] = rows.window(0, 1);
		rows.apply([upsert("a", "other", "changed")], 0);
		const ids = [before, ...all(rows)].map((row) => row?.id);
		expect(new Set(ids).size).toBe(5);
	});
});

// Some batches change more rows than are changed one by one.
const name = fc.oneof(
	fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"),
	fc.nat(99).map((at) => `n${at}`),
);
const description = fc.constantFrom("1", "2", "10", "x", "y x");
const order: fc.Arbitrary<RowOrder> = fc.record({
	by: fc.constantFrom<SortColumn>("name", "status", "age", "partition", 0),
	isDescending: fc.boolean(),
});
const step = fc.oneof(
	fc.record({
		batch: fc.array(
			fc.oneof(
				fc.tuple(name, description).map(([of, text]) => upsert(of, text)),
				name.map((of): LiveChange => ({ kind: "deleted", key: keyOf(of) })),
			),
			{ maxLength: 100, size: "max" },
		),
	}),
	fc.record({ order }),
	fc.record({ filter: fc.constantFrom("", "x", "1", "a", "none") }),
);

describe("SortedRows, after any steps", () => {
	it("has what sorting and filtering all resources gives", () => {
		fc.assert(
			fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
				const rows = new SortedRows(format);
				const model = new Map<string, ResourceRow>();
				let [ordered, filter]: [RowOrder, string] = [defaultOrder, ""];
				for (const each of steps) {
					if ("batch" in each) {
						rows.apply(each.batch, 0);
						for (const change of each.batch) {
							if (change.kind === "deleted") {
								model.delete(change.key);
							} else {
								model.set(change.key, new ResourceRow(change.key, change.resource, format));
							}
						}
					} else if ("order" in each) {
						ordered = each.order;
						rows.sort(ordered);
					} else {
						filter = each.filter;
						rows.filter(filter);
					}
					const expected = [...model.values()]
						.filter((row) => row.searchText.includes(filter))
						.sort(compareRows(ordered));
					expect(shown(rows)).toEqual(expected.map((row) => `${row.name} ${row.cells.join()}`));
					expect([rows.matching, rows.total]).toEqual([expected.length, model.size]);
				}
			}),
		);
	});
});
