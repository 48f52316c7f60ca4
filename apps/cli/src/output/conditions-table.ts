import { conditionsOf, type ReportedCondition, stateName } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { Condition_State } from "@plinth/proto";
import { shortDuration } from "../configuration/duration.ts";
import type { Io } from "../io.ts";
import { type Cell, plainCell, renderTable, type TableColumn } from "./table.ts";

const columns: readonly TableColumn[] = [
	{ heading: "CONDITION", cut: false },
	{ heading: "STATE", cut: false },
	{ heading: "REASON", cut: true, priority: 1 },
	{ heading: "REPORTER", cut: true, priority: 3 },
	{ heading: "AGE", cut: false, priority: 2 },
	{ heading: "MESSAGE", cut: true, readableWidth: 30 },
];

/** The conditions of resources, one per row; empty if there are none. */
export function conditionsTable(
	resources: readonly Resource[],
	io: Pick<Io, "width" | "color" | "clock">,
	{ showName }: { readonly showName: boolean },
): string {
	const now = io.clock.now();
	const rows = resources.flatMap((resource) =>
		conditionsOf(resource).map((reported) => [
			...(showName ? [plainCell(resource.id?.name ?? "")] : []),
			...cellsOf(reported, now),
		]),
	);
	if (rows.length === 0) {
		return "";
	}
	// The sections of `describe` are indented.
	const width = io.width === undefined || showName ? io.width : io.width - 2;
	const shown = showName ? [{ heading: "NAME", cut: false }, ...columns] : columns;
	return renderTable(shown, rows, { color: io.color, width });
}

function cellsOf(
	{ reporter, condition, isCurrent, updatedMs }: ReportedCondition,
	now: number,
): Cell[] {
	const state = stateName(condition.state) + (isCurrent ? "" : "?");
	const isGood = isCurrent && condition.state === Condition_State.TRUE;
	const isBad = condition.state === Condition_State.FALSE;
	return [
		plainCell(condition.type),
		{ text: state, tone: isGood ? "good" : isBad ? "bad" : "unsure" },
		plainCell(condition.reason),
		plainCell(reporter),
		plainCell(updatedMs === undefined ? "" : shortDuration(now - updatedMs)),
		plainCell(condition.message),
	];
}
