/** The longest comment that is kept or shown, in UTF-16 code units; longer ones end with an ellipsis. */
export const longestComment = 2_000;

/** A comment, shortened if it is too long. */
export function shortened(comment: string): string {
	// A letter is not cut in halves.
	return comment.length <= longestComment
		? comment
		: `${comment.slice(0, longestComment - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/**
 * The text of a comment, as it stands in a proto: the lines of a paragraph become one. Empty lines, indented lines and
 * items of lists stay. Instructions to the linter of buf are left out.
 */
export function commentText(comment: string): string {
	return shortened(comment)
		.split(/\r\n?|\n/)
		.map((line) => line.replace(/^ /, "").trimEnd())
		.filter((line) => !/^\s*buf:lint:/.test(line))
		.join("\n")
		.replace(/(?<=[^\n])\n(?!\s|[-*•] |\d+[.)] |$)/g, " ")
		.trim();
}
