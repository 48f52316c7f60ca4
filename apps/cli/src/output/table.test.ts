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

	const ranked = [
		{ heading: "NAME", cut: false },
		{ heading: "KIND", cut: true, priority: 2 },
		{ heading: "DONE", cut: false, priority: 1 },
		{ heading: "UID", cut: false, priority: 3 },
		{ heading: "ERROR", cut: true, readableWidth: 20 },
	];
	const error = "the disk of the server is full";
	const rankedRow = ["web", "service", "7", "01M8B4VVBPV1", error].map(plainCell);

	it.each([
		[
			71,
			"NAME  KIND     DONE  UID           ERROR",
			"web   service  7     01M8B4VVBPV1  the disk of the server is full",
		],
		[
			60,
			"NAME  KIND     DONE  UID           ERROR",
			"web   service  7     01M8B4VVBPV1  the disk of the server i…",
		],
		[
			55,
			"NAME  KIND     DONE  UID           ERROR",
			"web   service  7     01M8B4VVBPV1  the disk of the ser…",
		],
		[41, "NAME  KIND     DONE  ERROR", "web   service  7     the disk of the ser…"],
		[40, "NAME  DONE  ERROR", "web   7     the disk of the server is f…"],
		[31, "NAME  ERROR", "web   the disk of the server i…"],
		[20, "NAME  ERROR", "web   the disk of t…"],
	])(
		"leaves out the least important columns so that others stay readable, at %i",
		(width, ...lines) => {
			const text = renderTable(ranked, [rankedRow], { width, color: false });
			expect(text).toBe(`${lines.join("\n")}\n`);
		},
	);

	it("leaves out no column in a pipe", () => {
		const text = renderTable(ranked, [rankedRow], { width: undefined, color: false });
		expect(text).toContain("NAME  KIND     DONE  UID           ERROR\n");
	});

	it("keeps room for what is yet to come in a column that has to stay readable", () => {
		const first = ["web", "service", "7", "01M8B4VVBPV1", ""].map(plainCell);
		const options = { width: 50, color: false, moreFollows: true };
		const layout = new TableLayout(ranked, [first], options);
		expect(layout.heading()).toBe("NAME  KIND          DONE  ERROR\n");
		expect(layout.row(rankedRow)).toBe("web   service       7     the disk of the server …\n");
		const wide = new TableLayout(ranked, [first], { ...options, width: 200 });
		const long = "x".repeat(100);
		expect(wide.row([...rankedRow.slice(0, -1), plainCell(long)])).toContain(`${long}\n`);
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
