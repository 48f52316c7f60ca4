import { oneLine } from "./printable.ts";
import { cutTo, textWidth } from "./text-width.ts";

/** A column of a table. */
export interface TableColumn {
	readonly heading: string;
	/** Whether its cells may be truncated if the terminal is too narrow. */
	readonly cut: boolean;
	/**
	 * How important it is, as in the table columns of Kubernetes: 0, the default, is always shown. If the terminal is too
	 * narrow, the columns with the largest numbers are left out.
	 */
	readonly priority?: number;
	/** The width at which truncated cells are still useful; other columns are left out before it is less. 12 by default. */
	readonly readableWidth?: number;
}

/** The emphasis of a cell, if colors are on. */
export type Tone = "good" | "bad" | "unsure" | "plain";

/** One cell: text on one line. */
export interface Cell {
	readonly text: string;
	readonly tone: Tone;
}

/** A cell without emphasis. */
export function plainCell(text: string): Cell {
	return { text, tone: "plain" };
}

/** A row: a cell for each column. */
export type Row = readonly Cell[];

/** The options of a table. */
export interface TableOptions {
	/** Columns of the terminal; `undefined` disables truncation. */
	readonly width: number | undefined;
	readonly color: boolean;
	/** Whether rows will be added later. The columns then share the remaining width. */
	readonly moreFollows?: boolean;
}

const gap = "  ";
/** A truncated column keeps at least this width. */
const minCutWidth = 8;
const defaultReadableWidth = 12;
/** The maximum width to which a column grows for rows added later. */
const maxSpareWidth = 40;

/** A column that is shown. */
interface ShownColumn {
	readonly column: TableColumn;
	/** Its position in the rows. */
	readonly at: number;
	readonly width: number;
}

/** The layout of the columns. It renders rows together or one at a time. */
export class TableLayout {
	readonly #shown: readonly ShownColumn[];
	readonly #options: TableOptions;

	constructor(columns: readonly TableColumn[], rows: readonly Row[], options: TableOptions) {
		this.#options = options;
		const all = columns.map((column, at) => ({
			column,
			at,
			width: naturalWidth(column, rows, at),
		}));
		const fitting = fit(withoutLessImportant(all, options), options.width);
		this.#shown = options.moreFollows ? spread(fitting, options.width) : fitting;
	}

	heading(): string {
		return this.#line(
			({ column }) => plainCell(column.heading),
			(text) => (this.#options.color ? `\x1b[1m${text}\x1b[22m` : text),
		);
	}

	row(row: Row): string {
		return this.#line(
			({ at }) => row[at] ?? plainCell(""),
			(text, tone) => (this.#options.color ? toned(text, tone) : text),
		);
	}

	#line(cellOf: (shown: ShownColumn) => Cell, style: (text: string, tone: Tone) => string): string {
		const last = this.#shown.at(-1);
		const cells = this.#shown.map((shown) => {
			const { column, width } = shown;
			const { text, tone } = cellOf(shown);
			const clean = oneLine(text);
			const mayCut = column.cut && this.#options.width !== undefined;
			const cut = mayCut ? cutTo(clean, width) : clean;
			const padding = shown === last ? "" : " ".repeat(Math.max(0, width - textWidth(cut)));
			return style(cut, tone) + padding;
		});
		return `${cells.join(gap).trimEnd()}\n`;
	}
}

/** Renders a table with all its rows. */
export function renderTable(
	columns: readonly TableColumn[],
	rows: readonly Row[],
	options: TableOptions,
): string {
	const layout = new TableLayout(columns, rows, options);
	return layout.heading() + rows.map((row) => layout.row(row)).join("");
}

function naturalWidth({ heading }: TableColumn, rows: readonly Row[], at: number): number {
	return Math.max(
		textWidth(heading),
		...rows.map((row) => textWidth(oneLine(row[at]?.text ?? ""))),
	);
}

/** The width of a table with columns of these widths. */
function totalOf(widths: readonly number[]): number {
	return widths.reduce((sum, each) => sum + each, gap.length * Math.max(0, widths.length - 1));
}

/** The columns that fit without being truncated too much, the most important ones first. */
function withoutLessImportant(
	all: readonly ShownColumn[],
	{ width: available, moreFollows = false }: TableOptions,
): readonly ShownColumn[] {
	if (available === undefined) {
		return all;
	}
	const needed = ({ column, width }: ShownColumn) => {
		const { cut, readableWidth = 0 } = column;
		// Rows that follow may be wider than those that there are.
		const wanted = moreFollows ? Math.max(width, readableWidth) : width;
		return cut ? Math.min(wanted, readable(column)) : wanted;
	};
	const shown = new Set<ShownColumn>();
	for (const each of all.toSorted((a, b) => priorityOf(a) - priorityOf(b))) {
		if (priorityOf(each) === 0 || totalOf([...shown, each].map(needed)) <= available) {
			shown.add(each);
		}
	}
	return all.filter((each) => shown.has(each));
}

function priorityOf({ column: { priority = 0 } }: ShownColumn): number {
	return priority;
}

function readable({ heading, readableWidth = defaultReadableWidth }: TableColumn): number {
	return Math.max(readableWidth, textWidth(heading));
}

/**
 * Shrinks the widest columns that may be truncated, until all columns fit or none can shrink further: below their
 * readable width only if all of them have it.
 */
function fit(
	columns: readonly ShownColumn[],
	available: number | undefined,
): readonly ShownColumn[] {
	const widths = columns.map(({ width }) => width);
	let excess = available === undefined ? 0 : totalOf(widths) - available;
	const least = ({ heading }: TableColumn) => Math.max(minCutWidth, textWidth(heading));
	for (const floorOf of [readable, least]) {
		while (excess > 0) {
			const widest = widestAbove(columns, widths, floorOf);
			if (widest < 0) {
				break;
			}
			widths[widest] = (widths[widest] ?? 0) - 1;
			excess -= 1;
		}
	}
	return columns.map((each, at) => ({ ...each, width: widths[at] ?? each.width }));
}

/** The position of the widest column that may be truncated and is wider than its floor; -1 if there is none. */
function widestAbove(
	columns: readonly ShownColumn[],
	widths: readonly number[],
	floorOf: (column: TableColumn) => number,
): number {
	let widest = -1;
	for (const [at, { column }] of columns.entries()) {
		const own = widths[at] ?? 0;
		if (column.cut && own > floorOf(column) && own > (widths[widest] ?? 0)) {
			widest = at;
		}
	}
	return widest;
}

/**
 * Distributes the remaining width to the columns that may be truncated: to those that declare a readable width up to it,
 * then evenly, and what is left then to the last column.
 */
function spread(
	columns: readonly ShownColumn[],
	available: number | undefined,
): readonly ShownColumn[] {
	const widths = columns.map(({ width }) => width);
	let left = (available ?? 0) - totalOf(widths);
	for (const most of [({ readableWidth = 0 }: TableColumn) => readableWidth, () => maxSpareWidth]) {
		for (let before = Number.POSITIVE_INFINITY; left > 0 && left < before; ) {
			before = left;
			for (const [at, { column }] of columns.entries()) {
				const own = widths[at] ?? 0;
				if (column.cut && own < most(column) && left > 0) {
					widths[at] = own + 1;
					left -= 1;
				}
			}
		}
	}
	const last = widths.length - 1;
	if (columns[last]?.column.cut) {
		widths[last] = (widths[last] ?? 0) + Math.max(0, left);
	}
	return columns.map((each, at) => ({ ...each, width: widths[at] ?? each.width }));
}

const colors: Readonly<Record<Tone, number | undefined>> = {
	good: 32,
	bad: 31,
	unsure: 33,
	plain: undefined,
};

function toned(text: string, tone: Tone): string {
	const color = colors[tone];
	return color === undefined || text === "" ? text : `\x1b[${color}m${text}\x1b[39m`;
}
