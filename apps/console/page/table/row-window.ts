import type { ContentOf } from "../live/live-client.ts";
import type { SentRow } from "../live/view.ts";

/** The rows that a table has: those of a window, and how many there are. */
export interface RowWindow {
	/** The position of the first row. */
	readonly start: number;
	readonly rows: readonly SentRow[];
	/** How many rows match the filter. */
	readonly matching: number;
	/** How many there are, whether they match or not. */
	readonly total: number;
}

/** A window before anything has come. */
export const withoutRows: RowWindow = { start: 0, rows: [], matching: 0, total: 0 };

/** The window after an update. Rows that were there are the same objects. */
export function windowAfter(
	before: RowWindow,
	{ start, ids, rows, matching, total }: ContentOf<"table">,
): RowWindow {
	const known = new Map([...before.rows, ...rows].map((row) => [row.id, row]));
	return { start, rows: ids.flatMap((id) => known.get(id) ?? []), matching, total };
}

/** What a scroller shows. */
export interface Scrolled {
	/** In pixels. */
	readonly top: number;
	readonly height: number;
}

/** The positions of rows: from the first to the one before `end`. */
export interface RowRange {
	readonly first: number;
	readonly end: number;
}

/** The rows that can be seen, and some before and after them. */
export function rowsInSight(
	{ top, height }: Scrolled,
	rowHeight: number,
	matching: number,
	beyond: number,
): RowRange {
	const end = Math.min(matching, Math.ceil((top + height) / rowHeight) + beyond);
	return { first: Math.max(0, Math.min(end, Math.floor(top / rowHeight) - beyond)), end };
}

/** The rows to ask for: three screens around those in sight, at steps so that a small movement asks for nothing. */
export function windowAround(
	{ top, height }: Scrolled,
	rowHeight: number,
): { readonly start: number; readonly count: number } {
	const screen = Math.max(20, Math.ceil(height / rowHeight));
	const at = Math.floor(top / rowHeight / screen) * screen;
	return { start: Math.max(0, at - screen), count: 4 * screen };
}
