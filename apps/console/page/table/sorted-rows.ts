import type { LiveChange } from "../live/live-list.ts";
import { ResourceRow, type RowFormat } from "./resource-row.ts";
import { compareRows, defaultOrder, type RowOrder } from "./row-order.ts";

/** So few rows are inserted or removed one by one; for more, all rows are passed over once. */
const fewRows = 32;

/**
 * The rows of a live list, filtered and sorted.
 *
 * Invariants: `#rows` has the rows of `#byKey` that match the filter, and no others; it is sorted, and no two rows in it are
 * equal in the order. A batch of m changes of n rows costs O(m log n) comparisons, and one pass over the rows unless m is small.
 */
export class SortedRows {
	readonly #format: RowFormat;
	readonly #byKey = new Map<string, ResourceRow>();
	#rows: ResourceRow[] = [];
	#order: RowOrder = defaultOrder;
	#compare = compareRows(defaultOrder);
	#terms: readonly string[] = [];

	constructor(format: RowFormat) {
		this.#format = format;
	}

	/** How many rows there are, whether they match the filter or not. */
	get total(): number {
		return this.#byKey.size;
	}

	/** How many rows match the filter. */
	get matching(): number {
		return this.#rows.length;
	}

	/** The matching rows from a position on, in order. */
	window(start: number, count: number): readonly ResourceRow[] {
		return this.#rows.slice(start, start + count);
	}

	/**
	 * Applies a batch of changes.
	 *
	 * @param nowMs - when they arrived, in milliseconds since the epoch.
	 */
	apply(changes: readonly LiveChange[], nowMs: number): void {
		/** The rows before the batch, and after it. */
		const touched = new Map<string, [ResourceRow | undefined, ResourceRow | undefined]>();
		for (const change of changes) {
			const [before] = touched.get(change.key) ?? [this.#byKey.get(change.key)];
			if (change.kind === "deleted") {
				touched.set(change.key, [before, undefined]);
			} else {
				const changedMs = change.kind === "present" ? undefined : nowMs;
				const row = new ResourceRow(change.key, change.resource, this.#format, changedMs);
				touched.set(change.key, [before, row]);
			}
		}
		const removed: ResourceRow[] = [];
		const added: ResourceRow[] = [];
		for (const [key, [before, after]] of touched) {
			if (after === undefined) {
				this.#byKey.delete(key);
			} else {
				this.#byKey.set(key, after);
			}
			const old = before !== undefined && this.#matches(before) ? before : undefined;
			const now = after !== undefined && this.#matches(after) ? after : undefined;
			if (old === undefined || now === undefined || !this.#replace(old, now)) {
				removed.push(...(old === undefined ? [] : [old]));
				added.push(...(now === undefined ? [] : [now]));
			}
		}
		this.#remove(removed);
		this.#add(added.sort(this.#compare));
	}

	/** Sorts by another column, or in the other direction. */
	sort(order: RowOrder): void {
		if (order.by === this.#order.by && order.isDescending === this.#order.isDescending) {
			return;
		}
		this.#order = order;
		this.#compare = compareRows(order);
		this.#rows.sort(this.#compare);
	}

	/** Shows the rows that contain each of the words, in any cell and in any case. */
	filter(text: string): void {
		const terms = text.toLowerCase().split(/\s+/).filter(Boolean);
		if (terms.join(" ") === this.#terms.join(" ")) {
			return;
		}
		this.#terms = terms;
		this.#rows = [...this.#byKey.values()].filter((row) => this.#matches(row)).sort(this.#compare);
	}

	#matches(row: ResourceRow): boolean {
		return this.#terms.every((term) => row.searchText.includes(term));
	}

	/** Puts a row in the place of another, if its place is the same. */
	#replace(old: ResourceRow, row: ResourceRow): boolean {
		const at = this.#positionOf(old);
		const [before, after] = [this.#rows[at - 1], this.#rows[at + 1]];
		const isInPlace =
			(before === undefined || this.#compare(before, row) < 0) &&
			(after === undefined || this.#compare(row, after) < 0);
		if (isInPlace) {
			this.#rows[at] = row;
		}
		return isInPlace;
	}

	#remove(rows: readonly ResourceRow[]): void {
		if (rows.length > fewRows) {
			const gone = new Set(rows);
			this.#rows = this.#rows.filter((row) => !gone.has(row));
			return;
		}
		for (const row of rows) {
			this.#rows.splice(this.#positionOf(row), 1);
		}
	}

	/** @param rows - sorted. */
	#add(rows: readonly ResourceRow[]): void {
		const [first] = rows;
		const last = this.#rows.at(-1);
		if (first === undefined) {
			return;
		}
		if (last === undefined || this.#compare(last, first) < 0) {
			for (const row of rows) {
				this.#rows.push(row);
			}
		} else if (rows.length <= fewRows) {
			for (const row of rows) {
				this.#rows.splice(this.#positionOf(row), 0, row);
			}
		} else {
			this.#rows = merged(this.#rows, rows, this.#compare);
		}
	}

	/** The position of the row; if it is not there, that of the first row after it. */
	#positionOf(row: ResourceRow): number {
		let [low, high] = [0, this.#rows.length];
		while (low < high) {
			const middle = (low + high) >>> 1;
			// `middle` is below `high`, which is at most the length.
			if (this.#compare(this.#rows[middle] as ResourceRow, row) < 0) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		return low;
	}
}

/** The rows of two sorted lists, sorted. */
function merged(
	a: readonly ResourceRow[],
	b: readonly ResourceRow[],
	compare: (a: ResourceRow, b: ResourceRow) => number,
): ResourceRow[] {
	const rows: ResourceRow[] = [];
	let at = 0;
	for (const row of b) {
		for (let next = a[at]; next !== undefined && compare(next, row) < 0; next = a[at]) {
			rows.push(next);
			at += 1;
		}
		rows.push(row);
	}
	for (; at < a.length; at += 1) {
		rows.push(a[at] as ResourceRow);
	}
	return rows;
}
