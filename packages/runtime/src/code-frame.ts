/** A position in a text. */
export interface CodePosition {
	/** From 1. */
	readonly line: number;
	/** In UTF-16 code units, from 1; absent if only the line is known. */
	readonly column?: number;
	/** How many characters the arrow underlines; 1 by default. */
	readonly length?: number;
}

/** Lines above and below. */
const around = 2;

/**
 * The lines around a position, with their numbers, and an arrow below it:
 *
 * ```
 *     1 | const site = 1;
 *   > 2 | export const = 3;
 *       |              ^
 * ```
 */
export function codeFrame(source: string, { line, column, length = 1 }: CodePosition): string {
	const lines = source.split(/\r?\n/);
	const first = Math.max(1, line - around);
	const last = Math.min(lines.length, line + around);
	const width = String(last).length;
	const shown: string[] = [];
	for (let number = first; number <= last; number++) {
		const text = lines[number - 1] ?? "";
		if (number === lines.length && text === "" && number !== line) {
			continue;
		}
		const mark = number === line ? ">" : " ";
		shown.push(`  ${mark} ${String(number).padStart(width)} | ${withoutTabs(text)}`.trimEnd());
		if (number === line && column !== undefined) {
			const before = withoutTabs(text.slice(0, column - 1));
			const marked = Math.max(1, Math.min(length, text.length - column + 1));
			shown.push(`    ${" ".repeat(width)} | ${" ".repeat(before.length)}${"^".repeat(marked)}`);
		}
	}
	return shown.join("\n");
}

/** Tabs have another width on each terminal. */
function withoutTabs(text: string): string {
	return text.replaceAll("\t", "  ");
}
