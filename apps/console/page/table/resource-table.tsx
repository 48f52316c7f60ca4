import type { KnownType } from "@plinth/documents";
import { columnsOf } from "@plinth/documents";
import type { KeyboardEvent, RefObject } from "react";
import type { LiveState } from "../live/live-state.ts";
import { useIsTall } from "../parts/use-is-tall.ts";
import type { RowOrder, SortColumn } from "./row-order.ts";
import { type RowWindow, rowsInSight, type Scrolled } from "./row-window.ts";
import { rowHeight } from "./table-link.ts";
import { TableRow } from "./table-row.tsx";

/** So many rows are elements before and after those in sight. */
const rowsBeyond = 12;

/** Browsers limit the height of an element: rows beyond are found with the filter. */
const mostRows = 500_000;

/** A column of the table. */
interface Column {
	readonly by: SortColumn;
	readonly heading: string;
	/** As in `grid-template-columns`. */
	readonly width: string;
}

/** Resources of one type as rows, of which only those in sight are elements. */
export function ResourceTable({
	type,
	units,
	window,
	scroller,
	scrolled,
	state,
	order,
	onOrder,
}: {
	readonly type: KnownType;
	/** The units of the tenancy that have a column. */
	readonly units: readonly ("partition" | "namespace")[];
	readonly window: RowWindow;
	/** The element that scrolls. */
	readonly scroller: RefObject<HTMLDivElement | null>;
	readonly scrolled: Scrolled;
	readonly state: LiveState;
	readonly order: RowOrder;
	readonly onOrder: (order: RowOrder) => void;
}) {
	const rowCount = Math.min(window.matching, mostRows);
	const { first, end } = rowsInSight(scrolled, rowHeight, rowCount, rowsBeyond);
	const shown = window.rows.slice(
		Math.max(0, first - window.start),
		Math.max(0, end - window.start),
	);
	const firstShown = Math.max(first, window.start);
	// A narrow window shows the first columns: they say what is wrong with which resource.
	const isNameFirst = useIsTall();
	const columns = columnsOfTable(type, units, isNameFirst);
	const template = columns.map(({ width }) => width).join(" ");
	return (
		<div
			ref={scroller}
			className="rows"
			role="table"
			aria-label={type.key}
			aria-rowcount={rowCount + 1}
			style={{ "--columns": template } as React.CSSProperties}
			onKeyDown={(event) => moveFocus(event, rowCount)}
		>
			<div className="sizer" role="rowgroup" style={{ height: (rowCount + 1) * rowHeight }}>
				<Head columns={columns} order={order} onOrder={onOrder} />
				{shown.map((row, at) => (
					<TableRow
						key={row.key}
						row={row}
						type={type.key}
						index={firstShown + at}
						top={(firstShown + at + 1) * rowHeight}
						units={units}
						isNameFirst={isNameFirst}
					/>
				))}
			</div>
			{window.matching === 0 && <Empty state={state} total={window.total} />}
		</div>
	);
}

function columnsOfTable(
	{ schema }: KnownType,
	units: readonly ("partition" | "namespace")[],
	isNameFirst: boolean,
): readonly Column[] {
	const nameWidth = isNameFirst ? "minmax(100px, 1fr)" : "minmax(150px, 1.3fr)";
	const statusWidth = isNameFirst ? "minmax(256px, 2.6fr)" : "minmax(180px, 2.2fr)";
	const name: Column = { by: "name", heading: "name", width: nameWidth };
	const status: Column = { by: "status", heading: "status", width: statusWidth };
	return [
		...(isNameFirst ? [name, status] : []),
		...units.map((unit) => ({ by: unit, heading: unit, width: "minmax(100px, 0.6fr)" })),
		...(isNameFirst ? [] : [name]),
		...columnsOf(schema).map(({ heading }, at) => ({
			by: at,
			heading: heading.toLowerCase(),
			width: "minmax(80px, 0.85fr)",
		})),
		...(isNameFirst ? [] : [status]),
		{ by: "age", heading: "age", width: "76px" },
	];
}

function Head({
	columns,
	order,
	onOrder,
}: {
	readonly columns: readonly Column[];
	readonly order: RowOrder;
	readonly onOrder: (order: RowOrder) => void;
}) {
	return (
		<div className="row head" role="row" aria-rowindex={1}>
			{columns.map(({ by, heading }) => {
				const isSorted = order.by === by;
				const direction = order.isDescending ? "descending" : "ascending";
				return (
					<div
						key={by}
						role="columnheader"
						className={by === "age" ? "number" : undefined}
						aria-sort={isSorted ? direction : "none"}
					>
						<button
							type="button"
							title={heading}
							onClick={() => onOrder({ by, isDescending: isSorted && !order.isDescending })}
						>
							{heading}
							<span className="sort" aria-hidden="true">
								{isSorted ? (order.isDescending ? "▾" : "▴") : ""}
							</span>
						</button>
					</div>
				);
			})}
		</div>
	);
}

/** Why there are no rows. */
function Empty({ state, total }: { readonly state: LiveState; readonly total: number }) {
	if (state.phase === "refused") {
		return (
			<p className="notice bad empty" role="alert">
				{state.reason}
			</p>
		);
	}
	if (state.phase !== "live") {
		return <p className="muted empty">{state.phase === "lost" ? state.reason : "Loading…"}</p>;
	}
	return (
		<p className="muted empty">
			{total === 0 ? "There are no such resources." : "No row matches the filter."}
		</p>
	);
}

/** The arrows move between the links of rows, and bring the next row into sight. */
function moveFocus(event: KeyboardEvent<HTMLElement>, rowCount: number): void {
	const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
	const row = event.target instanceof Element ? event.target.closest("[data-index]") : null;
	if (step === 0 || event.altKey || event.ctrlKey || event.metaKey || rowCount === 0) {
		return;
	}
	event.preventDefault();
	const table = event.currentTarget;
	const current = row === null ? -1 : Number(row.getAttribute("data-index"));
	const next = Math.max(0, Math.min(rowCount - 1, current + step));
	// The head covers the first row in sight.
	const [top, bottom] = [next * rowHeight, (next + 2) * rowHeight];
	if (top < table.scrollTop) {
		table.scrollTop = top;
	} else if (bottom > table.scrollTop + table.clientHeight) {
		table.scrollTop = bottom - table.clientHeight;
	}
	// It may not have been an element before.
	requestAnimationFrame(() =>
		table.querySelector<HTMLAnchorElement>(`[data-index="${next}"] a`)?.focus(),
	);
}
