import fc from "fast-check";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { printable } from "./printable.ts";
import { plainCell, renderTable, TableLayout } from "./table.ts";

const columns = [
	{ heading: "NAME", cut: false },
	{ heading: "TEXT", cut: true },
	{ heading: "MORE", cut: true },
	{ heading: "AGE", cut: false },
];

describe("a table", () => {
	it("fits where what may be cut leaves enough room, and keeps its columns straight", () => {
		const text = fc.string({ unit: "grapheme", maxLength: 60 });
		fc.assert(
			fc.property(
				fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,10}$/), text, text), { maxLength: 5 }),
				fc.integer({ min: 45, max: 200 }),
				(rows, width) => {
					const cells = rows.map(([name, one, other]) => [name, one, other, "1d"].map(plainCell));
					const lines = renderTable(columns, cells, { width, color: false }).split("\n");
					for (const line of lines) {
						expect(stringWidth(line)).toBeLessThanOrEqual(width);
					}
					expect(lines).toHaveLength(rows.length + 2);
				},
			),
		);
	});

	it("shows text of others on one line, without what would steer the terminal", () => {
		const cells = [["a", "one\ntwo\t\x1b[31mred\x07", "", "1d"].map(plainCell)];
		expect(renderTable(columns, cells, { width: undefined, color: false })).toBe(
			"NAME  TEXT              MORE  AGE\na     one two [31mred         1d\n",
		);
		expect(printable("a\n\x1b]0;title\x07b\u009b2J")).toBe("a\n ]0;title b 2J");
	});

	it("gives rows that are yet to come the room that there is", () => {
		const options = { width: 60, color: false, moreFollows: true };
		const layout = new TableLayout(columns, [["a", "b", "c", "1d"].map(plainCell)], options);
		expect(layout.row(["a", "much longer than it was", "c", "1d"].map(plainCell))).toBe(
			"a     much longer than it was   c                        1d\n",
		);
		expect(layout.heading().length).toBeLessThanOrEqual(61);
	});
});
