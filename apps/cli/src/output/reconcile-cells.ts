import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type Reconcile,
	ReconcileState,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import type { Io } from "../io.ts";
import { widthInSection } from "./section.ts";
import { type Cell, plainCell, renderTable } from "./table.ts";

/** The resource of a key, without its type and the units of tenancy that it lacks: `default/default/miles`. */
export function resourceOfKey(key: string): string {
	return key.split("/").slice(1).filter(Boolean).join("/");
}

/** What a controller does with a resource, for people: `running for 12s`, `failed, retry in 8s`. */
function stateCell({ state, inState, dueIn, failure }: Reconcile): Cell {
	const since = inState === undefined ? "" : ` for ${short(inState)}`;
	const isFailing = failure !== undefined;
	switch (state) {
		case ReconcileState.IDLE:
			return { text: "done", tone: "good" };
		case ReconcileState.READY:
			return { text: `queued${since}`, tone: isFailing ? "bad" : "unsure" };
		case ReconcileState.DELAYED: {
			const isSoon = dueIn !== undefined && durationMs(dueIn) < 1_000;
			const when = dueIn === undefined ? "later" : isSoon ? "soon" : `in ${short(dueIn)}`;
			return isFailing
				? { text: `failed, retry ${when}`, tone: "bad" }
				: { text: `done, again ${when}`, tone: "good" };
		}
		case ReconcileState.RUNNING:
			return { text: `running${since}`, tone: isFailing ? "bad" : "unsure" };
		case ReconcileState.OVERDUE:
			return { text: `overdue, running${since}`, tone: "bad" };
		case ReconcileState.HELD:
			return { text: `waiting for its own writes${since}`, tone: "unsure" };
		case ReconcileState.ELSEWHERE:
			return { text: "on another server", tone: "unsure" };
		case ReconcileState.STOPPED:
			return { text: "not running", tone: "bad" };
		default:
			return plainCell("");
	}
}

/** The options of `reconcilesTable`. */
export interface ReconcilesTableOptions extends Pick<Io, "width" | "color" | "clock"> {
	/** Whether to show which server works on each. */
	readonly showServer: boolean;
}

/**
 * Reconciles as a table in a section, with their failures if there are any.
 *
 * @param subject - the heading and the text of the first column.
 */
export function reconcilesTable(
	reconciles: readonly Reconcile[],
	{ width, color, clock, showServer }: ReconcilesTableOptions,
	subject: { readonly heading: string; readonly of: (reconcile: Reconcile) => string },
): string {
	if (reconciles.length === 0) {
		return "";
	}
	const nowMs = clock.now();
	const isFailing = reconciles.some(({ failure }) => failure !== undefined);
	const columns = [
		{ heading: subject.heading, cut: false },
		...(showServer ? [{ heading: "SERVER", cut: true, priority: 3 }] : []),
		{ heading: "STATE", cut: false },
		...(isFailing ? failureColumns : []),
	];
	const rows = reconciles.map((each) => [
		plainCell(subject.of(each)),
		...(showServer ? [plainCell(each.server)] : []),
		stateCell(each),
		...(isFailing ? failureCells(each, nowMs) : []),
	]);
	return renderTable(columns, rows, { color, width: widthInSection(width) });
}

/** The attempts of a reconcile that fails, since when, and its last error; three empty cells if it does not fail. */
function failureCells({ failure }: Reconcile, nowMs: number): readonly Cell[] {
	return failure === undefined
		? [plainCell(""), plainCell(""), plainCell("")]
		: [
				plainCell(String(failure.attempts)),
				plainCell(ago(failure.since, nowMs)),
				{ text: failure.message, tone: "bad" },
			];
}

/** The columns of `failureCells`. */
const failureColumns = [
	{ heading: "ATTEMPTS", cut: false, priority: 2 },
	{ heading: "FAILING-FOR", cut: false, priority: 1 },
	{ heading: "LAST-ERROR", cut: true, readableWidth: 30 },
] as const;

/** How long ago something was; empty if that is not known. */
export function ago(time: Timestamp | undefined, nowMs: number): string {
	return time === undefined ? "" : shortDuration(nowMs - timestampMs(time));
}

function short(duration: Duration): string {
	return shortDuration(durationMs(duration));
}
