import { contentProblems } from "./check-contents.ts";
import { deletionProblems } from "./check-deletions.ts";
import { refusalProblems } from "./check-refusals.ts";
import type { History } from "./history.ts";
import { incarnationsOf } from "./incarnations.ts";

/** Observations that contradict the promises. */
export interface Problems {
	/** Deletions without reason, although blocked, or without effect. */
	readonly deletions: readonly string[];
	/** Contents that were cleared or changed without reason, or lost. */
	readonly contents: readonly string[];
	/** Refusals that name no blocker, or a wrong one. */
	readonly refusals: readonly string[];
}

/** Checks a history against all promises. */
export function problemsOf(history: History, regions: readonly string[]): Problems {
	const incarnations = incarnationsOf(history);
	return {
		deletions: deletionProblems(incarnations),
		contents: contentProblems(incarnations),
		refusals: refusalProblems(incarnations, regions),
	};
}

/** The result without problems. */
export const noProblems: Problems = { deletions: [], contents: [], refusals: [] };
