import { isRequested } from "./history/check-deletions.ts";
import type { Event, History } from "./history/history.ts";
import { type Incarnations, incarnationsOf } from "./history/incarnations.ts";

/** The counts of a run. */
export function summary(history: History) {
	const count = (of: (event: Event) => boolean) => history.filter(of).length;
	const tally = (call: Event["call"]) => {
		const its = history.filter((event) => event.call === call);
		return Object.fromEntries(
			[...Map.groupBy(its, (event) => ("outcome" in event ? event.outcome.kind : "seen"))].map(
				([kind, { length }]) => [kind, length],
			),
		);
	};
	const incarnations = incarnationsOf(history);
	const all = [...incarnations.ofKey.values()].flat().filter(({ uid }) => uid !== "");
	return {
		calls: history.length,
		writes: tally("write"),
		deletes: tally("delete"),
		reads: count(({ call }) => call === "read"),
		incarnations: all.length,
		names: new Set(all.map(({ key }) => key)).size,
		deletedByRule: all.filter(
			(incarnation) => incarnation.markedBy < Infinity && !isRequested(incarnations, incarnation),
		).length,
		cleared: clearedIn(history, incarnations),
		refusals: reasonsOf(history, "refused"),
		unknown: reasonsOf(history, "unknown"),
	};
}

/** The number of written fields that were observed as cleared. */
function clearedIn(history: History, { writes }: Incarnations): number {
	const cleared = new Set<string>();
	for (const event of history) {
		if (event.call === "read" && event.seen !== undefined) {
			const had = writes.get(event.seen.note)?.content.references ?? {};
			for (const field of Object.keys(had)) {
				if (event.seen.references[field] === undefined) {
					cleared.add(`${event.seen.note} ${field}`);
				}
			}
		}
	}
	return cleared.size;
}

/** The number of occurrences of each reason, without names. */
function reasonsOf(
	history: History,
	kind: "refused" | "unknown",
): Readonly<Record<string, number>> {
	const reasons = history.flatMap((event) => {
		if (!("outcome" in event) || event.outcome.kind !== kind) {
			return [];
		}
		const { outcome } = event;
		const text =
			outcome.kind === "unknown" ? outcome.why : "message" in outcome ? outcome.message : "";
		return [`${event.call}: ${text.replaceAll(/default\/default\/[\w-]+ \([\w-]+\)/g, "…")}`];
	});
	return Object.fromEntries(
		[...Map.groupBy(reasons, (reason) => reason)]
			.map(([reason, { length }]) => [reason.slice(0, 200), length] as const)
			.sort(([, a], [, b]) => b - a),
	);
}
