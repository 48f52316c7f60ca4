/** A line of a table: its cells by column. */
export type Row = Readonly<Record<string, string | number>>;

/** Prints rows under a title, columns as wide as they need to be. */
export function printTable(title: string, rows: readonly Row[]): void {
	const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
	const lines = [columns, ...rows.map((row) => columns.map((column) => `${row[column] ?? ""}`))];
	const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
	console.log(`\n${title}\n`);
	for (const [at, line] of lines.entries()) {
		console.log(line.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join("  "));
		if (at === 0) {
			console.log(widths.map((width) => "-".repeat(width)).join("  "));
		}
	}
}

/** The first column has names, the others have numbers. */
function pad(cell: string, width: number, column: number): string {
	return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
