/** One line of a table: what was measured, and the numbers. */
export type Row = Readonly<Record<string, string | number>>;

/** Prints rows under a title, columns as wide as they need to be. */
export function printTable(title: string, rows: readonly Row[]): void {
	const columns = Object.keys(rows[0] ?? {});
	const cells = rows.map((row) => columns.map((column) => format(row[column])));
	const widths = columns.map((column, at) =>
		Math.max(column.length, ...cells.map((row) => row[at]?.length ?? 0)),
	);
	const line = (parts: readonly string[]) =>
		parts
			.map((part, at) => (at === 0 ? part.padEnd(widths[at] ?? 0) : part.padStart(widths[at] ?? 0)))
			.join("  ");
	console.log(`\n${title}\n`);
	console.log(line(columns));
	console.log(widths.map((width) => "-".repeat(width)).join("  "));
	for (const row of cells) {
		console.log(line(row));
	}
}

function format(value: string | number | undefined): string {
	return typeof value === "number" ? Math.round(value).toLocaleString("en-US") : (value ?? "");
}

/** Heap in use after collections, in bytes; needs `node --expose-gc`. */
export async function heapUsed(): Promise<number> {
	for (let round = 0; round < 3; round++) {
		await new Promise((resolve) => setImmediate(resolve));
		globalThis.gc?.();
	}
	return process.memoryUsage().heapUsed;
}
