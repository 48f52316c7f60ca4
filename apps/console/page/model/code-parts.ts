/** A part of a comment. */
export interface CommentPart {
	/** Where it begins in the comment. */
	readonly at: number;
	readonly part: string;
	/** Whether it stands between backticks, which `part` lacks. */
	readonly isCode: boolean;
}

/** The parts of a comment: texts, and code between two backticks of a line. Other backticks stay. */
export function codeParts(text: string): readonly CommentPart[] {
	let at = 0;
	return text.split(/(`[^`\n]+`)/).flatMap((part, index) => {
		const isCode = index % 2 === 1;
		const begin = at;
		at += part.length;
		return part === "" ? [] : [{ at: begin, part: isCode ? part.slice(1, -1) : part, isCode }];
	});
}
