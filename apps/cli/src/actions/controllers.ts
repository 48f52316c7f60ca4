import { toJson } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	ControllerSchema,
	ControllerService,
	type ListControllersResponse,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { getController } from "../api/controllers.ts";
import type { ServerSession } from "../api/server-session.ts";
import { shortDuration } from "../configuration/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { failingCell, phaseCell, queued } from "../output/controller-cells.ts";
import { runsOn } from "../output/controller-text.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { ago, resourceOfKey } from "../output/reconcile-cells.ts";
import { type Cell, plainCell, type Row, renderTable } from "../output/table.ts";
import { showController } from "./controller-detail.ts";
import { warnOfMissing } from "./missing-servers.ts";

/** Prints the state of the controllers of a cluster, or of one of them in detail. */
export async function controllers(
	session: ServerSession,
	name: string | undefined,
	output: OutputFormat,
): Promise<ExitCode> {
	const { io, connection } = session;
	if (name !== undefined) {
		const response = await getController(session, name);
		io.out(await showController(response, output, io));
		warnOfMissing(response.servers, io);
		return exitCodes.ok;
	}
	const client = connection.client(ControllerService);
	const response = await session.call(client.listControllers({}, { signal: io.signal }));
	io.out(await showControllers(response, output, io));
	warnOfMissing(response.servers, io);
	return exitCodes.ok;
}

/** Columns that are shown only if a controller has a value for them. */
const troubles = [
	{ heading: "RESTARTS", cut: false },
	{ heading: "STILL-RUNNING", cut: true, readableWidth: 20 },
	{ heading: "UNDECODABLE", cut: true, readableWidth: 20 },
] as const;

const columns = [
	{ heading: "NAME", cut: false },
	{ heading: "MANAGES", cut: true, priority: 6 },
	{ heading: "RUNS-ON", cut: false, priority: 7 },
	{ heading: "PHASE", cut: false, priority: 1 },
	{ heading: "SINCE", cut: false, priority: 8 },
	{ heading: "QUEUED", cut: false, priority: 2 },
	{ heading: "RUNNING", cut: false, priority: 3 },
	{ heading: "DONE", cut: false, priority: 5 },
	{ heading: "FAILED", cut: false, priority: 4 },
	{ heading: "FAILING", cut: false },
	{ heading: "LAST-ERROR", cut: true, readableWidth: 30 },
] as const;

/** The controllers in an output format. */
export async function showControllers(
	response: ListControllersResponse,
	output: OutputFormat,
	options: Pick<Io, "width" | "color" | "clock">,
): Promise<string> {
	const { controllers: all } = response;
	const forms = () => all.map((one) => toJson(ControllerSchema, one, { useProtoFieldName: true }));
	switch (output) {
		case "name":
			return all.map(({ name }) => `${name}\n`).join("");
		case "json":
			return `${JSON.stringify(forms(), undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(...forms());
		case "table":
			return tableOf(response, options);
	}
}

function tableOf(
	{ controllers: all, servers }: ListControllersResponse,
	options: Pick<Io, "width" | "color" | "clock">,
): string {
	const nowMs = options.clock.now();
	const rows = all.map((controller) => ({
		row: rowOf(controller, servers.length, nowMs),
		troubles: [restartsCell(controller), stillRunningCell(controller), undecodableCell(controller)],
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

function rowOf(controller: Controller, servers: number, nowMs: number): Row {
	const { requests, reconciles, inPhase, phase } = controller;
	return [
		plainCell(controller.name),
		plainCell(controller.manages),
		plainCell(runsOn(controller, servers)),
		phaseCell(phase),
		plainCell(inPhase === undefined ? "" : shortDuration(durationMs(inPhase))),
		plainCell(String(queued(requests))),
		plainCell(String(requests?.active ?? 0)),
		plainCell(String(reconciles?.succeeded ?? 0)),
		plainCell(String(reconciles?.failed ?? 0)),
		failingCell(requests?.failing ?? 0),
		lastErrorCell(controller, nowMs),
	];
}

/** The error that ended a run last, or the one of a reconcile, whichever is newer. */
function lastErrorCell({ lastError, reconciles, requests }: Controller, nowMs: number): Cell {
	const failure = reconciles?.lastFailure;
	const [runMs, failureMs] = [lastError, failure].map((each) =>
		each?.occurredAt === undefined ? 0 : timestampMs(each.occurredAt),
	);
	if (failure !== undefined && (failureMs ?? 0) >= (runMs ?? 0)) {
		const what = `${resourceOfKey(failure.key)}, ${ago(failure.occurredAt, nowMs)} ago`;
		return {
			text: `${failure.message} (${what})`,
			tone: (requests?.failing ?? 0) > 0 ? "bad" : "plain",
		};
	}
	return plainCell(
		lastError === undefined ? "" : `${lastError.message} (${ago(lastError.occurredAt, nowMs)} ago)`,
	);
}

function restartsCell({ restarts }: Controller): Cell {
	return restarts === 0 ? plainCell("") : { text: String(restarts), tone: "unsure" };
}

/** The number of reconciles that run too long, and the longest of them. */
function stillRunningCell({ stillRunning, overdue }: Controller): Cell {
	const [longest] = stillRunning;
	if (longest === undefined) {
		// The server reports those of earlier runs by key alone.
		return overdue.length === 0
			? plainCell("")
			: { text: `${overdue.length} (${resourceOfKey(overdue[0] ?? "")})`, tone: "bad" };
	}
	const time =
		longest.running === undefined ? "" : ` for ${shortDuration(durationMs(longest.running))}`;
	return {
		text: `${stillRunning.length} (${resourceOfKey(longest.key)}${time})`,
		tone: overdue.length > 0 ? "bad" : "unsure",
	};
}

/** The number of cached resources that can't be decoded, and the error of one of them. */
function undecodableCell({ undecodable }: Controller): Cell {
	return undecodable === undefined || undecodable.count === 0
		? plainCell("")
		: { text: `${undecodable.count} (${undecodable.errors[0] ?? ""})`, tone: "bad" };
}
