import type { ResourceRow } from "./resource-row.ts";

/** What rows are sorted by: a column of every table, or the position of one of the type's columns. */
export type SortColumn = "partition" | "namespace" | "name" | "status" | "age" | number;

/** The order of rows. */
export interface RowOrder {
	readonly by: SortColumn;
	readonly isDescending: boolean;
}

/** By name. */
export const defaultOrder: RowOrder = { by: "name", isDescending: false };

/** Compares rows. No two are equal, since the key decides at the end. */
export function compareRows({ by, isDescending }: RowOrder) {
	const sortValue = valueGetter(by);
	const sign = isDescending ? -1 : 1;
	return (a: ResourceRow, b: ResourceRow): number =>
		sign * compareValues(sortValue(a), sortValue(b)) || compareText(a.key, b.key);
}

function valueGetter(by: SortColumn): (row: ResourceRow) => string | number {
	switch (by) {
		case "name":
			return (row) => row.name;
		case "partition":
			return (row) => row.partition;
		case "namespace":
			return (row) => row.namespace;
		case "status":
			return (row) => row.status.text;
		case "age":
			// The oldest is the one that was created first, and has the greatest age.
			return (row) => -(row.createdMs ?? 0);
		default:
			return (row) => row.cells[by] ?? "";
	}
}

function compareValues(a: string | number, b: string | number): number {
	if (typeof a === "number" && typeof b === "number") {
		return a - b;
	}
	const [textA, textB] = [String(a), String(b)];
	const [numberA, numberB] = [numberOf(textA), numberOf(textB)];
	if (numberA !== undefined && numberB !== undefined && numberA !== numberB) {
		return numberA - numberB;
	}
	// Numbers come before text, so that the order is total.
	if ((numberA === undefined) !== (numberB === undefined)) {
		return numberA === undefined ? 1 : -1;
	}
	return compareText(textA, textB);
}

function numberOf(text: string): number | undefined {
	return /^-?\d{1,15}(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function compareText(a: string, b: string): number {
	return a < b ? -1 : a > b ? 1 : 0;
}
