import { toJson } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	ControllerSchema,
	Phase,
	PhaseSchema,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import { toYaml } from "../document/show-document.ts";
import { exitCodes } from "../exit-codes.ts";
import type { OutputFormat } from "../output/print-resources.ts";
import { type Cell, plainCell, type Row, renderTable, type TableOptions } from "../output/table.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth controllers`: the state of the controllers of one server. */
export const addControllers: AddCommand = (program, run) => {
	program
		.command("controllers")
		.description("print the state of the server's controllers")
		.addOption(outputOption())
		.action(({ output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { io, connection } = session;
				const { controllers } = await session.call(
					connection.controllers.listControllers({}, { signal: io.signal }),
				);
				io.out(showControllers(controllers, output, io));
				return exitCodes.ok;
			}),
		);
};

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
export function showControllers(
	controllers: readonly Controller[],
	output: OutputFormat,
	options: TableOptions,
): string {
	const forms = () =>
		controllers.map((one) => toJson(ControllerSchema, one, { useProtoFieldName: true }));
	switch (output) {
		case "name":
			return controllers.map(({ name }) => `${name}\n`).join("");
		case "json":
			return `${JSON.stringify(forms(), undefined, 2)}\n`;
		case "yaml":
			return toYaml(...forms());
		case "table":
			return tableOf(controllers, options);
	}
}

function tableOf(controllers: readonly Controller[], options: TableOptions): string {
	const rows = controllers.map((controller) => ({
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
		plainCell(controller.placement === Placement.EACH_SERVER ? "each server" : "one server"),
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
