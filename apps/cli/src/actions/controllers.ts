import { toJson } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	ControllerSchema,
	ControllerService,
	Phase,
	PhaseSchema,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { ServerSession } from "../api/server-session.ts";
import { shortDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { type Cell, plainCell, type Row, renderTable, type TableOptions } from "../output/table.ts";

/** Prints the state of the controllers of one server. */
export async function controllers(session: ServerSession, output: OutputFormat): Promise<ExitCode> {
	const { io, connection } = session;
	const client = connection.client(ControllerService);
	const response = await session.call(client.listControllers({}, { signal: io.signal }));
	io.out(await showControllers(response.controllers, output, io));
	return exitCodes.ok;
}

/** Columns that are shown only if a controller has a value for them. */
const troubles = [
	{ heading: "STILL-RUNNING", cut: true },
	{ heading: "UNDECODABLE", cut: true },
] as const;

const columns = [
	{ heading: "NAME", cut: false },
	{ heading: "MANAGES", cut: true },
	{ heading: "RUNS-ON", cut: false },
	{ heading: "PHASE", cut: false },
	{ heading: "SINCE", cut: false },
	{ heading: "WAITING", cut: false },
	{ heading: "DONE", cut: false },
	{ heading: "FAILED", cut: false },
	{ heading: "RESTARTS", cut: false },
	{ heading: "LAST-ERROR", cut: true },
] as const;

/** The controllers in an output format. */
export async function showControllers(
	all: readonly Controller[],
	output: OutputFormat,
	options: TableOptions,
): Promise<string> {
	const forms = () => all.map((one) => toJson(ControllerSchema, one, { useProtoFieldName: true }));
	switch (output) {
		case "name":
			return all.map(({ name }) => `${name}\n`).join("");
		case "json":
			return `${JSON.stringify(forms(), undefined, 2)}\n`;
		case "yaml":
			return (await import("../document/to-yaml.ts")).toYaml(...forms());
		case "table":
			return tableOf(all, options);
	}
}

function tableOf(all: readonly Controller[], options: TableOptions): string {
	const rows = all.map((controller) => ({
		row: rowOf(controller),
		troubles: [stillRunningCell(controller), undecodableCell(controller)],
	}));
	const shown = troubles.flatMap((column, at) =>
		rows.some((row) => row.troubles[at]?.text !== "") ? [{ column, at }] : [],
	);
	return renderTable(
		[...columns, ...shown.map(({ column }) => column)],
		rows.map(({ row, troubles: cells }) => [
			...row,
			...shown.map(({ at }) => cells[at] ?? plainCell("")),
		]),
		options,
	);
}

function rowOf(controller: Controller): Row {
	const { requests, reconciles, restarts, inPhase, phase } = controller;
	const waiting = (requests?.live ?? 0) + (requests?.background ?? 0);
	const isRunning = phase === Phase.RUNNING || phase === Phase.WAITING_FOR_LEASE;
	return [
		plainCell(controller.name),
		plainCell(controller.manages),
		plainCell(runsOn(controller)),
		{
			text: phaseName(phase),
			tone: isRunning ? "good" : "unsure",
		},
		plainCell(inPhase === undefined ? "" : shortDuration(durationMs(inPhase))),
		plainCell(String(waiting)),
		plainCell(String(reconciles?.succeeded ?? 0)),
		plainCell(String(reconciles?.failed ?? 0)),
		{ text: String(restarts), tone: restarts > 0 ? "unsure" : "plain" },
		plainCell(controller.lastError?.message ?? ""),
	];
}

/** Which servers run it, and of a sharded one, how much of it this server does. */
function runsOn({ placement, shards }: Controller): string {
	switch (placement) {
		case Placement.EACH_SERVER:
			return "each server";
		case Placement.SHARDED:
			return shards === undefined
				? "all shards"
				: `${shards.open.length} of ${shards.count} shards`;
		default:
			return "one server";
	}
}

/** The number of reconciles that run too long, and the longest of them. */
function stillRunningCell({ stillRunning, overdue }: Controller): Cell {
	const [longest] = stillRunning;
	if (longest === undefined) {
		// The server reports those of earlier runs by key alone.
		return overdue.length === 0
			? plainCell("")
			: { text: `${overdue.length} (${overdue[0]})`, tone: "bad" };
	}
	const time =
		longest.running === undefined ? "" : ` for ${shortDuration(durationMs(longest.running))}`;
	return {
		text: `${stillRunning.length} (${longest.key}${time})`,
		tone: overdue.length > 0 ? "bad" : "unsure",
	};
}

/** The number of cached resources that can't be decoded, and the error of one of them. */
function undecodableCell({ undecodable }: Controller): Cell {
	return undecodable === undefined || undecodable.count === 0
		? plainCell("")
		: { text: `${undecodable.count} (${undecodable.errors[0] ?? ""})`, tone: "bad" };
}

function phaseName(phase: Phase): string {
	return (PhaseSchema.value[phase]?.localName ?? "").toLowerCase().replaceAll("_", " ");
}
