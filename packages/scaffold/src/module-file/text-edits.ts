/** An insertion into a text. */
export interface Insertion {
	/** The offset in UTF-16 units. */
	readonly at: number;
	readonly text: string;
}

/** A part of a text. */
export interface Span {
	readonly start: number;
	readonly end: number;
}

/** The text with all insertions; those at the same place in the given order. */
export function withInsertions(text: string, insertions: readonly Insertion[]): string {
	const ordered = [...insertions].sort((a, b) => a.at - b.at);
	return ordered.reduceRight(
		(result, { at, text: added }) => result.slice(0, at) + added + result.slice(at),
		text,
	);
}

/** The white space before the offset, if nothing else precedes it on its line. */
export function indentationAt(text: string, offset: number): string | undefined {
	const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
	return /^\s*$/.test(line) ? line : undefined;
}

/**
 * Appends an item to a list in brackets, in the style of its last item: on a line of its own or behind it, with a
 * comma at the end if there is one now.
 *
 * @param list - the brackets included.
 * @param last - the last item; `undefined` if there is none.
 * @param comments - all comments of the text.
 */
export function appendItem(
	text: string,
	list: Span,
	last: Span | undefined,
	item: string,
	comments: readonly Span[],
): readonly Insertion[] {
	if (last === undefined) {
		const padding = text[list.start] === "{" ? " " : "";
		return [{ at: list.start + 1, text: `${padding}${item}${padding}` }];
	}
	const indentation = indentationAt(text, last.start);
	if (indentation === undefined) {
		return [{ at: last.end, text: `, ${item}` }];
	}
	const lineBreak = text.includes("\r\n") ? "\r\n" : "\n";
	const comma = commaAfter(text, last.end, list.end, comments);
	const end = endOfLine(text, comma ?? last.end, list.end - 1, comments);
	return comma === undefined
		? [
				{ at: last.end, text: "," },
				{ at: end, text: `${lineBreak}${indentation}${item}` },
			]
		: [{ at: end, text: `${lineBreak}${indentation}${item},` }];
}

/** The offset behind the first comma that is not in a comment. */
function commaAfter(
	text: string,
	from: number,
	end: number,
	comments: readonly Span[],
): number | undefined {
	for (let at = from; at < end; at++) {
		const comment = comments.find(({ start }) => start === at);
		if (comment !== undefined) {
			at = comment.end - 1;
		} else if (text[at] === ",") {
			return at + 1;
		}
	}
	return undefined;
}

/** The offset behind the comments that follow on the same line, or the given one. */
function endOfLine(text: string, from: number, end: number, comments: readonly Span[]): number {
	let result = from;
	for (;;) {
		const next = comments.find(
			(comment) => comment.start >= result && /^[^\S\n]*$/.test(text.slice(result, comment.start)),
		);
		if (next === undefined || next.end > end) {
			return result;
		}
		result = next.end;
	}
}
