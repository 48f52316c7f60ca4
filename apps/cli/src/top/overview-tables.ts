import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
	ControllerOverview,
	Overview,
	ServerOverview,
	TypeOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import { phaseCell, queued } from "../output/controller-cells.ts";
import { runsOn } from "../output/controller-text.ts";
import { type Cell, plainCell, type Row, type TableColumn } from "../output/table.ts";
import { controllersByAttention, typesByAttention } from "./attention.ts";
import { medianCell, p99Cell, perWriteCell, unknown } from "./commit-cells.ts";
import { bytes, count, rate } from "./numbers.ts";

/** A table of an overview. */
export interface OverviewTable {
	readonly columns: readonly TableColumn[];
	readonly rows: readonly Row[];
	/** How many rows there are besides, which the overview does not have; 0 if absent. */
	readonly leftOut?: number;
}

/** A column, and what it shows of one thing. */
interface Column<T> extends TableColumn {
	readonly cell: (one: T) => Cell;
	/** Shown only if there is room. */
	readonly wide?: boolean;
	/** Shown only if something has a value that is known and not 0. */
	readonly rare?: boolean;
}

/** Terminals with so many columns have room for everything. */
const wideColumns = 120;

/** The tables of an overview, the most urgent rows first. */
export function overviewTables(
	overview: Overview,
	width: number | undefined,
): readonly OverviewTable[] {
	const isWide = width === undefined || width >= wideColumns;
	const reported = overview.servers.filter(({ server }) => server?.missing === "");
	const servers = overview.servers.length;
	return [
		tableOf(serverColumns, reported, isWide),
		tableOf(controllerColumns(servers), controllersByAttention(overview.controllers), isWide),
		tableOf(typeColumns, typesByAttention(overview.types), isWide),
	];
}

function tableOf<T>(
	columns: readonly Column<T>[],
	all: readonly T[],
	isWide: boolean,
): OverviewTable {
	const shown = columns.filter(
		({ wide = false, rare = false, cell }) =>
			(isWide || !wide) && (!rare || all.some((one) => !valueless.includes(cell(one).text))),
	);
	return { columns: shown, rows: all.map((one) => shown.map(({ cell }) => cell(one))) };
}

/** What cells show that say nothing. */
const valueless: readonly string[] = ["0", unknown];

const serverColumns: readonly Column<ServerOverview>[] = [
	{ heading: "SERVER", cut: true, cell: ({ server }) => plainCell(server?.name ?? "") },
	{
		heading: "UP",
		cut: false,
		cell: ({ process }) =>
			plainCell(process?.uptime ? shortDuration(durationMs(process.uptime)) : ""),
	},
	{
		heading: "VERSION",
		cut: true,
		wide: true,
		cell: ({ server }) => plainCell(server?.version ?? ""),
	},
	{
		heading: "CPU",
		cut: false,
		cell: ({ process }) => plainCell(`${Math.round((process?.cpu ?? 0) * 100)}%`),
	},
	{ heading: "DELAY", cut: false, cell: delayCell },
	{
		heading: "MEMORY",
		cut: false,
		cell: ({ process }) => plainCell(bytes(process?.residentBytes ?? 0)),
	},
	{ heading: "HEAP", cut: false, cell: heapCell },
	{
		heading: "COMMITS/S",
		cut: false,
		cell: ({ storage }) => plainCell(rate(storage?.commitsPerSecond ?? 0)),
	},
	{ heading: "MEDIAN", cut: false, wide: true, rare: true, cell: medianCell },
	{ heading: "P99", cut: false, rare: true, cell: p99Cell },
	{ heading: "PER-WRITE", cut: false, wide: true, rare: true, cell: perWriteCell },
	{
		heading: "WATCHES",
		cut: false,
		cell: ({ storage }) => plainCell(count(storage?.watches ?? 0)),
	},
	{ heading: "LEASES", cut: false, cell: ({ storage }) => plainCell(count(storage?.leases ?? 0)) },
	{
		heading: "STORED VERSION",
		cut: false,
		wide: true,
		cell: ({ storage }) => plainCell(storage?.version ?? ""),
	},
];

/** A delay that callers notice is marked. */
function delayCell({ process }: ServerOverview): Cell {
	if (process?.eventLoopDelay === undefined) {
		return plainCell("-");
	}
	const ms = durationMs(process.eventLoopDelay);
	return { text: `${Math.round(ms)}ms`, tone: ms >= 200 ? "bad" : ms >= 100 ? "unsure" : "plain" };
}

/** How much of the heap is used. */
function heapCell({ process }: ServerOverview): Cell {
	const limit = Number(process?.heapLimitBytes ?? 0);
	const share = limit === 0 ? 0 : Number(process?.heapUsedBytes ?? 0) / limit;
	return {
		text: `${Math.round(share * 100)}%`,
		tone: share >= 0.9 ? "bad" : share >= 0.8 ? "unsure" : "plain",
	};
}

function controllerColumns(servers: number): readonly Column<ControllerOverview>[] {
	return [
		{
			heading: "CONTROLLER",
			cut: true,
			cell: ({ controller }) => plainCell(controller?.name ?? ""),
		},
		{
			heading: "MANAGES",
			cut: true,
			wide: true,
			cell: ({ controller }) => plainCell(controller?.manages ?? ""),
		},
		{
			heading: "RUNS-ON",
			cut: true,
			wide: true,
			cell: ({ controller }) => plainCell(controller ? runsOn(controller, servers) : ""),
		},
		{
			heading: "PHASE",
			cut: true,
			cell: ({ controller }) => (controller ? phaseCell(controller.phase) : plainCell("")),
		},
		{
			heading: "QUEUED",
			cut: false,
			cell: ({ controller }) => plainCell(count(queued(controller?.requests))),
		},
		{
			heading: "DELAYED",
			cut: false,
			wide: true,
			cell: ({ controller }) => plainCell(count(controller?.requests?.delayed ?? 0)),
		},
		{
			heading: "RUNNING",
			cut: false,
			cell: ({ controller }) => plainCell(count(controller?.requests?.active ?? 0)),
		},
		{
			heading: "FAILING",
			cut: false,
			cell: ({ controller }) => alarming(controller?.requests?.failing ?? 0, "bad"),
		},
		{
			heading: "DONE/S",
			cut: false,
			cell: ({ reconcilesPerSecond }) => plainCell(rate(reconcilesPerSecond)),
		},
		{
			heading: "FAILED/S",
			cut: false,
			cell: ({ failuresPerSecond }) => ({
				text: rate(failuresPerSecond),
				tone: failuresPerSecond > 0 ? "bad" : "plain",
			}),
		},
		{
			heading: "SLOW",
			cut: false,
			rare: true,
			cell: ({ stillRunning }) => alarming(stillRunning, "unsure"),
		},
		{
			heading: "RESTARTS",
			cut: false,
			wide: true,
			rare: true,
			cell: ({ controller }) => alarming(controller?.restarts ?? 0, "unsure"),
		},
	];
}

const typeColumns: readonly Column<TypeOverview>[] = [
	{ heading: "TYPE", cut: true, cell: ({ type }) => plainCell(type) },
	{ heading: "RESOURCES", cut: false, cell: ({ resources }) => plainCell(count(resources)) },
	{
		heading: "WRITES/S",
		cut: false,
		cell: ({ writesPerSecond }) => plainCell(rate(writesPerSecond)),
	},
	{
		heading: "FALSE",
		cut: false,
		cell: ({ withFalseCondition }) => alarming(withFalseCondition, "bad"),
	},
	{
		heading: "STALE",
		cut: false,
		cell: ({ withStaleCondition }) => alarming(withStaleCondition, "unsure"),
	},
	{
		heading: "DELETING",
		cut: false,
		rare: true,
		cell: ({ beingDeleted = 0n }) => alarming(beingDeleted, "unsure"),
	},
];

function alarming(value: number | bigint, tone: "bad" | "unsure"): Cell {
	return { text: count(value), tone: Number(value) > 0 ? tone : "plain" };
}
