import { oneLine } from "./printable.ts";
import { cutTo, textWidth } from "./text-width.ts";

/** A column of a table. */
export interface TableColumn {
	readonly heading: string;
	/** Whether its cells may be truncated if the terminal is too narrow. */
	readonly cut: boolean;
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
/** The maximum width to which a column grows for rows added later. */
const maxSpareWidth = 40;

/** The layout of the columns. It renders rows together or one at a time. */
export class TableLayout {
	readonly #columns: readonly TableColumn[];
	readonly #options: TableOptions;
	readonly #widths: readonly number[];

	constructor(columns: readonly TableColumn[], rows: readonly Row[], options: TableOptions) {
		this.#columns = columns;
		this.#options = options;
		const natural = naturalWidths(columns, rows);
		const widths = fit(columns, natural, options.width);
		this.#widths = options.moreFollows ? spread(columns, widths, options.width) : widths;
	}

	heading(): string {
		const cells = this.#columns.map(({ heading }) => plainCell(heading));
		return this.#line(cells, (text) => (this.#options.color ? `\x1b[1m${text}\x1b[22m` : text));
	}

	row(row: Row): string {
		return this.#line(row, (text, tone) => (this.#options.color ? toned(text, tone) : text));
	}

	#line(row: Row, style: (text: string, tone: Tone) => string): string {
		const last = row.length - 1;
		const cells = row.map(({ text, tone }, at) => {
			const width = this.#widths[at] ?? 0;
			const clean = oneLine(text);
			const mayCut = this.#columns[at]?.cut && this.#options.width !== undefined;
			const cut = mayCut ? cutTo(clean, width) : clean;
			const padding = at === last ? "" : " ".repeat(Math.max(0, width - textWidth(cut)));
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

function naturalWidths(columns: readonly TableColumn[], rows: readonly Row[]): readonly number[] {
	return columns.map(({ heading }, at) =>
		Math.max(textWidth(heading), ...rows.map((row) => textWidth(oneLine(row[at]?.text ?? "")))),
	);
}

/** Shrinks the widest columns that may be truncated, until all columns fit or none can shrink further. */
function fit(
	columns: readonly TableColumn[],
	natural: readonly number[],
	width: number | undefined,
): readonly number[] {
	const widths = [...natural];
	const gaps = gap.length * (columns.length - 1);
	let excess = width === undefined ? 0 : widths.reduce((sum, one) => sum + one, gaps) - width;
	while (excess > 0) {
		let widest = -1;
		for (const [at, { cut, heading }] of columns.entries()) {
			const least = Math.max(minCutWidth, textWidth(heading));
			const own = widths[at] ?? 0;
			if (cut && own > least && own > (widths[widest] ?? 0)) {
				widest = at;
			}
		}
		if (widest < 0) {
			break;
		}
		widths[widest] = (widths[widest] ?? 0) - 1;
		excess -= 1;
	}
	return widths;
}

/** Distributes the remaining width evenly to the columns that may be truncated. */
function spread(
	columns: readonly TableColumn[],
	widths: readonly number[],
	width: number | undefined,
): readonly number[] {
	const spread = [...widths];
	let left =
		(width ?? 0) - widths.reduce((sum, one) => sum + one, gap.length * (columns.length - 1));
	while (left > 0) {
		const before = left;
		for (const [at, { cut }] of columns.entries()) {
			const own = spread[at] ?? 0;
			if (cut && own < maxSpareWidth && left > 0) {
				spread[at] = own + 1;
				left -= 1;
			}
		}
		if (left === before) {
			break;
		}
	}
	return spread;
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
