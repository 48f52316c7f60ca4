import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Overview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { oneLine } from "../output/printable.ts";
import { TableLayout } from "../output/table.ts";
import { cutTo } from "../output/text-width.ts";
import { needsAttention } from "./attention.ts";
import { leaseTable } from "./lease-table.ts";
import { bytes, count, rate } from "./numbers.ts";
import { type OverviewTable, overviewTables } from "./overview-tables.ts";

/** What is to be shown. */
export interface ShownOverview {
	/** The address of the server. */
	readonly server: string;
	/** The newest overview. */
	readonly overview: Overview;
	/** Why there is no newer one; `undefined` while the connection lasts. */
	readonly lost?: string | undefined;
}

/** Where it is shown. */
export interface ScreenSize {
	/** Columns; `undefined` disables truncation. */
	readonly width: number | undefined;
	/** Lines; `undefined` shows all rows. */
	readonly height: number | undefined;
	readonly color: boolean;
}

/** An overview as lines that fit. If there are more rows than lines, each table shows its first ones. */
export function renderOverview(shown: ShownOverview, size: ScreenSize): readonly string[] {
	const { width, height, color } = size;
	const head = headOf(shown, color).map((line) => fitted(line, width));
	const tables = overviewTables(shown.overview, width).filter(({ rows }) => rows.length > 0);
	const overhead = head.length + 2 * tables.length;
	const room = height === undefined ? undefined : Math.max(0, height - overhead);
	const shares = sharesOf(
		tables.map(({ rows }) => rows.length),
		room,
	);
	const lines = [
		...head,
		...tables.flatMap((table, at) => ["", ...tableLines(table, shares[at] ?? 0, size)]),
	];
	const left = height === undefined ? Number.POSITIVE_INFINITY : height - lines.length;
	const leases = leaseTable(shown.overview);
	// Below all others, if these leave room for it: nobody has to act on a lease.
	if (leases.rows.length > 0 && left > 3) {
		lines.push("", ...tableLines(leases, left - 2, size));
	}
	return lines.slice(0, height ?? lines.length);
}

/** A line with its emphasis: an escape sequence for the terminal, empty for none. */
interface Line {
	readonly text: string;
	readonly style: "" | "1" | "31" | "33";
}

function headOf({ server, overview, lost }: ShownOverview, color: boolean): readonly Line[] {
	const { servers, storage, takenAt } = overview;
	const time = takenAt === undefined ? "" : timestampDate(takenAt).toLocaleTimeString("en-GB");
	const missing = servers.flatMap(({ server: each }) =>
		each === undefined || each.missing === "" ? [] : [`${each.name} ${each.missing}`],
	);
	const lines: Line[] = [
		{ text: `${server}  ${plural(servers.length, "server")}  ${time}`, style: "1" },
		{
			text: [
				`${storage?.kind ?? ""} version ${storage?.version ?? ""}`,
				plural(storage?.resources ?? 0n, "resource"),
				`${bytes(storage?.bytes ?? 0n)} and ${bytes(storage?.retainedBytes ?? 0n)} kept`,
				`${rate(storage?.commitsPerSecond ?? 0)} commits/s`,
				plural(storage?.watches ?? 0n, "watch", "watches"),
			].join("  "),
			style: "",
		},
		attentionLine(overview),
		...missing.map((text): Line => ({ text, style: "31" })),
		...(lost === undefined
			? []
			: [{ text: `connection lost: ${lost}: reconnecting`, style: "31" } as const]),
	];
	return color ? lines : lines.map(({ text }) => ({ text, style: "" }));
}

function attentionLine({ controllers, types }: Overview): Line {
	const troubled = controllers.filter(needsAttention).length;
	const sum = (figure: (type: (typeof types)[number]) => bigint) =>
		types.reduce((total, type) => total + figure(type), 0n);
	const [isFalse, isStale, deleted] = [
		sum(({ withFalseCondition }) => withFalseCondition),
		sum(({ withStaleCondition }) => withStaleCondition),
		sum(({ beingDeleted = 0n }) => beingDeleted),
	];
	const parts = [
		...(troubled > 0 ? [plural(troubled, "controller")] : []),
		...(isFalse > 0n ? [`${count(isFalse)} with a false condition`] : []),
		...(isStale > 0n
			? [`${count(isStale)} with a stale ${isFalse > 0n ? "one" : "condition"}`]
			: []),
		...(deleted > 0n ? [`${count(deleted)} being deleted`] : []),
	];
	if (parts.length === 0) {
		return { text: "nothing needs attention", style: "" };
	}
	const text = `needs attention: ${parts.join(", ")}`;
	return { text, style: troubled > 0 || isFalse > 0n ? "31" : "33" };
}

function plural(value: number | bigint, one: string, many = `${one}s`): string {
	return `${count(value)} ${Number(value) === 1 ? one : many}`;
}

function fitted({ text, style }: Line, width: number | undefined): string {
	const clean = oneLine(text);
	const cut = width === undefined ? clean : cutTo(clean, width);
	return style === "" ? cut : `\x1b[${style}m${cut}\x1b[0m`;
}

/** How many lines each table gets of those that there are: as many as it needs, or an equal share. */
function sharesOf(needed: readonly number[], room: number | undefined): readonly number[] {
	if (room === undefined) {
		return needed;
	}
	const shares = needed.map(() => 0);
	let left = room;
	while (left > 0) {
		const before = left;
		for (const [at, rows] of needed.entries()) {
			if (left > 0 && (shares[at] ?? 0) < rows) {
				shares[at] = (shares[at] ?? 0) + 1;
				left -= 1;
			}
		}
		if (left === before) {
			break;
		}
	}
	return shares;
}

function tableLines(
	{ columns, rows, leftOut = 0 }: OverviewTable,
	share: number,
	{ width, color }: ScreenSize,
): readonly string[] {
	const isCut = rows.length + Math.min(1, leftOut) > share;
	const shown = rows.slice(0, isCut ? Math.max(0, share - 1) : rows.length);
	const hidden = rows.length + leftOut - shown.length;
	const layout = new TableLayout(columns, shown, { width, color });
	const lines = [layout.heading(), ...shown.map((row) => layout.row(row))];
	const more = hidden > 0 && share > 0 ? [`… ${hidden} more`] : [];
	return [...lines.map((line) => line.replace(/\n$/, "")), ...more];
}
