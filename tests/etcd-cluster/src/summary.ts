import type { History, Operation } from "./history/history.ts";

/** What there was of everything in a run. */
export function summary({ operations, sessions }: History) {
	const count = (of: (operation: Operation) => boolean) => operations.filter(of).length;
	const isRead = ({ call }: Operation) => call.kind === "read";
	const unknown = operations.flatMap(({ outcome }) => {
		return outcome.kind === "unknown" ? [outcome.why.replaceAll(/\d+/g, "…")] : [];
	});
	return {
		operations: operations.length,
		writes: {
			all: count((each) => !isRead(each)),
			done: count((each) => !isRead(each) && ["value", "deleted"].includes(each.outcome.kind)),
			conflicts: count(({ outcome }) => outcome.kind === "conflict"),
			unknown: count((each) => !isRead(each) && each.outcome.kind === "unknown"),
		},
		strongReads: count((each) => isRead(each) && each.strong),
		eventualReads: count((each) => isRead(each) && !each.strong),
		registers: new Set(operations.map(({ register }) => register)).size,
		lives: new Set(operations.map(({ life }) => life)).size,
		watches: sessions.length,
		events: sessions.reduce((sum, { events }) => sum + events.length, 0),
		unknown: Object.fromEntries(
			[...Map.groupBy(unknown, (why) => why)].map(([why, { length }]) => [why, length]),
		),
	};
}
