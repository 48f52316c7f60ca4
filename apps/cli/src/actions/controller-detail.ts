import { toJson } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	type ControllerOnServer,
	type GetControllerResponse,
	GetControllerResponseSchema,
	Placement,
	type Queue,
	type Reconcile,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import type { Io } from "../io.ts";
import { failingCell, phaseCell, queued } from "../output/controller-cells.ts";
import { phaseName, runsOn } from "../output/controller-text.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { printable } from "../output/printable.ts";
import { ago, reconcilesTable, resourceOfKey } from "../output/reconcile-cells.ts";
import { section, widthInSection } from "../output/section.ts";
import { type Cell, plainCell, renderTable, type TableColumn } from "../output/table.ts";

/** One controller in an output format. */
export async function showController(
	response: GetControllerResponse,
	output: OutputFormat,
	io: Pick<Io, "width" | "color" | "clock">,
): Promise<string> {
	const form = () => toJson(GetControllerResponseSchema, response, { useProtoFieldName: true });
	switch (output) {
		case "name":
			return `${response.controller?.name}\n`;
		case "json":
			return `${JSON.stringify(form(), undefined, 2)}\n`;
		case "yaml":
			return (await import("@plinth/documents/yaml")).toYaml(form());
		case "table":
			return describe(response, io);
	}
}

const subject = { heading: "RESOURCE", of: ({ key }: Reconcile) => resourceOfKey(key) };

function describe(
	{ controller, failing, running, servers }: GetControllerResponse,
	io: Pick<Io, "width" | "color" | "clock">,
): string {
	if (controller === undefined) {
		return "";
	}
	const nowMs = io.clock.now();
	const facts = factsOf(controller, servers.length, nowMs);
	const isInAgents = controller.servers.some(({ isAgent }) => isAgent);
	const isCluster = servers.length > 1 || isInAgents;
	const isSingleton = controller.placement === Placement.SINGLETON;
	const options = { ...io, showServer: isCluster && !isSingleton };
	const width = Math.max(...facts.map(([field]) => field.length)) + 2;
	const head = facts.map(([field, value]) => `${`${field}:`.padEnd(width)}${printable(value)}\n`);
	const total = controller.requests?.failing ?? 0;
	const more = total > failing.length ? `, the ${failing.length} that have failed for longest` : "";
	return [
		...head,
		section(
			isInAgents ? "agents" : "servers",
			isCluster ? serversTable(controller.servers, io) : "",
		),
		section(`failing (${total}${more})`, reconcilesTable(failing, options, subject)),
		section(
			`running (${controller.requests?.active ?? 0})`,
			reconcilesTable(running, options, subject),
		),
		section("can't be decoded", (controller.undecodable?.errors ?? []).map(line).join("")),
	].join("");
}

/** What a controller does on each server. Its shards and restarts are shown if there are any. */
function serversTable(
	servers: readonly ControllerOnServer[],
	{ width, color }: Pick<Io, "width" | "color">,
): string {
	const all = [...serverColumns, shardsColumn, restartsColumn];
	const columns = all.filter(
		(column) => !column.isOptional || servers.some((one) => column.of(one).text !== ""),
	);
	const rows = servers.map((server) => columns.map(({ of }) => of(server)));
	return renderTable(columns, rows, { color, width: widthInSection(width) });
}

/** A column of the table of servers. */
interface ServerColumn extends TableColumn {
	readonly isOptional?: boolean;
	readonly of: (server: ControllerOnServer) => Cell;
}

const serverColumns: readonly ServerColumn[] = [
	{ heading: "SERVER", cut: true, of: ({ server }) => plainCell(server) },
	{ heading: "PHASE", cut: false, of: ({ phase }) => phaseCell(phase) },
	{
		heading: "SINCE",
		cut: false,
		priority: 6,
		of: ({ inPhase }) => plainCell(short(inPhase)),
	},
	{
		heading: "QUEUED",
		cut: false,
		priority: 1,
		of: ({ requests }) => plainCell(String(queued(requests))),
	},
	{
		heading: "RUNNING",
		cut: false,
		priority: 2,
		of: ({ requests }) => plainCell(String(requests?.active ?? 0)),
	},
	{
		heading: "DONE",
		cut: false,
		priority: 4,
		of: ({ reconciles }) => plainCell(String(reconciles?.succeeded ?? 0)),
	},
	{
		heading: "FAILED",
		cut: false,
		priority: 3,
		of: ({ reconciles }) => plainCell(String(reconciles?.failed ?? 0)),
	},
	{ heading: "FAILING", cut: false, of: ({ requests }) => failingCell(requests?.failing ?? 0) },
];

const shardsColumn: ServerColumn = {
	heading: "SHARDS",
	cut: false,
	priority: 5,
	isOptional: true,
	of: ({ shards }) => plainCell(shards === undefined ? "" : String(shards.open.length)),
};

const restartsColumn: ServerColumn = {
	heading: "RESTARTS",
	cut: false,
	isOptional: true,
	of: ({ restarts }) => plainCell(restarts === 0 ? "" : String(restarts)),
};

function factsOf(
	controller: Controller,
	servers: number,
	nowMs: number,
): readonly (readonly [string, string])[] {
	const { lastError, requests, reconciles, restarts } = controller;
	const facts: (readonly [string, string])[] = [
		["name", controller.name],
		["manages", controller.manages],
		["watches", controller.watches.join(", ")],
		["runs on", runsOn(controller, servers)],
		["phase", `${phaseName(controller.phase)} for ${short(controller.inPhase)}`],
		["reconciles", reconcilesText(controller)],
		["queue", requests === undefined ? "" : queueText(requests)],
		["restarts", restarts === 0 ? "" : String(restarts)],
		[
			"run failed",
			lastError === undefined
				? ""
				: `${ago(lastError.occurredAt, nowMs)} ago: ${lastError.message}`,
		],
		[
			"last failure",
			reconciles?.lastFailure === undefined
				? ""
				: `${ago(reconciles.lastFailure.occurredAt, nowMs)} ago, of ${resourceOfKey(reconciles.lastFailure.key)}: ${reconciles.lastFailure.message}`,
		],
		["triggers itself", endlessText(controller, nowMs)],
	];
	return facts.filter(([, value]) => value !== "");
}

function endlessText({ reconciles }: Controller, nowMs: number): string {
	const chain = reconciles?.endlessChain;
	return chain === undefined
		? ""
		: `${ago(chain.occurredAt, nowMs)} ago: ${chain.length} reconciles in a row, the last of ${resourceOfKey(chain.key)}, each requested by what the one before had written`;
}

function reconcilesText({ reconciles }: Controller): string {
	const { succeeded = 0n, failed = 0n, overdue = 0n, total, longest } = reconciles ?? {};
	const all = Number(succeeded + failed);
	const meanMs = all === 0 || total === undefined ? 0 : durationMs(total) / all;
	const times =
		all === 0
			? ""
			: `, ${milliseconds(meanMs)} on average${longest === undefined ? "" : `, at most ${milliseconds(longestMs(longest))}`}`;
	const tooLong = overdue === 0n ? "" : `, ${overdue} exceeded the time limit`;
	return `${succeeded} succeeded, ${failed} failed${tooLong}${times}`;
}

/** At least 1: servers report whole milliseconds. */
function longestMs(longest: Duration): number {
	return Math.max(1, durationMs(longest));
}

/** With three digits. */
function milliseconds(ms: number): string {
	return ms < 1_000
		? `${Number(ms.toPrecision(3))} ms`
		: `${Number((ms / 1_000).toPrecision(3))} s`;
}

function queueText(queue: Queue): string {
	const { delayed, active, held, oldestWaiting } = queue;
	const oldest =
		oldestWaiting === undefined
			? ""
			: `, the oldest for ${shortDuration(durationMs(oldestWaiting))}`;
	const parts = [
		`${queued(queue)} queued${oldest}`,
		`${active} running`,
		`${delayed} delayed`,
		...(held === 0 ? [] : [`${held} waiting for their own writes`]),
	];
	return parts.join(", ");
}

function line(text: string): string {
	return `${printable(text)}\n`;
}

function short(duration: Duration | undefined): string {
	return duration === undefined ? "" : shortDuration(durationMs(duration));
}
