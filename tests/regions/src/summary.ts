import { isAskedFor } from "./history/check-deletions.ts";
import type { Event, History } from "./history/history.ts";
import { type Lives, livesOf } from "./history/lives.ts";

/** What there was of everything in a run. */
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
	const lives = livesOf(history);
	const all = [...lives.ofKey.values()].flat().filter(({ uid }) => uid !== "");
	return {
		calls: history.length,
		writes: tally("write"),
		deletes: tally("delete"),
		looks: count(({ call }) => call === "look"),
		incarnations: all.length,
		names: new Set(all.map(({ key }) => key)).size,
		deletedByRule: all.filter((life) => life.markedBy < Infinity && !isAskedFor(lives, life))
			.length,
		cleared: clearedIn(history, lives),
		refusals: reasonsOf(history, "refused"),
		unknown: reasonsOf(history, "unknown"),
	};
}

/** How many fields were seen cleared that had been written. */
function clearedIn(history: History, { writes }: Lives): number {
	const cleared = new Set<string>();
	for (const event of history) {
		if (event.call === "look" && event.seen !== undefined) {
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

/** How often each reason was given, without the names in it. */
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
