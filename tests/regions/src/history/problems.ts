import { contentProblems } from "./check-contents.ts";
import { deletionProblems } from "./check-deletions.ts";
import { refusalProblems } from "./check-refusals.ts";
import type { History } from "./history.ts";
import { livesOf } from "./lives.ts";

/** What contradicts the promises in what users saw. */
export interface Problems {
	/** Deleted without reason, though blocked, or not deleted after all. */
	readonly deletions: readonly string[];
	/** Cleared or changed without reason, or lost. */
	readonly contents: readonly string[];
	/** Refused without naming who is in the way, or naming somebody who is not. */
	readonly refusals: readonly string[];
}

/** All that is wrong with what users saw. */
export function problemsOf(history: History, regions: readonly string[]): Problems {
	const lives = livesOf(history);
	return {
		deletions: deletionProblems(lives),
		contents: contentProblems(lives),
		refusals: refusalProblems(lives, regions),
	};
}

/** Where nothing is wrong. */
export const noProblems: Problems = { deletions: [], contents: [], refusals: [] };
