import type { ErrorReport } from "../child/messages.ts";
import { errorPlace } from "./error-place.ts";
import { showProblem } from "./problem.ts";

/** An error of a child for people: what is wrong, and the code that it is about. */
export function describeError(error: ErrorReport, folder: string): string {
	for (const each of causesOf(error)) {
		const place = errorPlace(each, folder);
		if (place !== undefined) {
			const name = each.isExpected || each.name === "Error" ? "" : `${each.name}: `;
			return showProblem(folder, { ...place, message: `${name}${messageOf(each)}` });
		}
	}
	return error.isExpected ? error.message : (error.stack ?? error.message);
}

/** The error and its causes; the innermost, which says most, first. */
function causesOf(error: ErrorReport): readonly ErrorReport[] {
	return error.cause === undefined ? [error] : [...causesOf(error.cause), error];
}

/** The message without the place, which is shown before it. */
function messageOf({ message }: ErrorReport): string {
	const [, what] = /^(Cannot find (?:module|package) '.+?') imported from /.exec(message) ?? [];
	return what ?? message;
}
