import type { KnownType } from "@plinth/documents";
import { hasNamespace, hasPartition } from "@plinth/resource";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useRef } from "react";
import type { ResourceSearch, TableSearch } from "../app/search.ts";
import { useTypes } from "../app/types-query.ts";
import { count } from "../model/format.ts";
import { LiveBadge } from "../parts/live-badge.tsx";
import { formatOrder, parseOrder } from "./order-text.ts";
import { ResourceTable } from "./resource-table.tsx";
import type { RowOrder } from "./row-order.ts";
import { type RowWindow, windowAround } from "./row-window.ts";
import { rowHeight, tableQuery } from "./table-link.ts";
import { Toolbar } from "./toolbar.tsx";
import { useLiveRows } from "./use-live-rows.ts";
import { useScrolled } from "./use-scrolled.ts";

const route = getRouteApi("/types/$type");

/** The resources of a type as a live table. */
export function TablePage() {
	const { type: key } = route.useParams();
	const types = useTypes();
	const type = types?.byKey.get(key);
	if (types === undefined) {
		return null;
	}
	return type === undefined ? (
		<div className="page">
			<h1>{key}</h1>
			<p>The server has no such type, or you may not use it.</p>
		</div>
	) : (
		<LiveTable key={key} type={type} />
	);
}

function LiveTable({ type }: { readonly type: KnownType }) {
	const search = route.useSearch();
	const navigate = route.useNavigate();
	const set = (change: Partial<TableSearch>) => {
		void navigate({ search: (before) => withoutEmpty({ ...before, ...change }), replace: true });
	};
	const units = [
		...(hasPartition(type.scope) ? (["partition"] as const) : []),
		...(hasNamespace(type.scope) ? (["namespace"] as const) : []),
	];
	const order = parseOrder(search.sort);
	const scroller = useRef<HTMLDivElement>(null);
	const scrolled = useScrolled(scroller, rowHeight);
	const { window, state } = useLiveRows(tableQuery(type.key, search), {
		...{ order, filter: search.q ?? "" },
		...windowAround(scrolled, rowHeight),
	});
	return (
		<div className="page fills">
			<div className="page-head">
				<h1>{type.type.kind}</h1>
				<span className="muted">
					{type.type.group}.{type.type.groupVersion}
				</span>
				<LiveBadge state={state} />
				<span className="actions">
					<Counts {...window} />
					<Link
						to="/create/$type"
						params={{ type: type.key }}
						search={placeOf(search)}
						className="button"
					>
						Create
					</Link>
				</span>
			</div>
			<Toolbar units={units} search={search} onChange={set} />
			<ResourceTable
				type={type}
				units={units.filter((unit) => (search[unit] ?? "*") === "*")}
				window={window}
				scroller={scroller}
				scrolled={scrolled}
				state={state}
				order={order}
				onOrder={(next: RowOrder) => set({ sort: formatOrder(next) })}
			/>
		</div>
	);
}

/** Where a resource is created from a table: in the units that it shows. */
function placeOf({ partition, namespace }: TableSearch): ResourceSearch {
	return {
		...(partition !== undefined && partition !== "*" && { partition }),
		...(namespace !== undefined && namespace !== "*" && { namespace }),
	};
}

function Counts({ matching, total }: Pick<RowWindow, "matching" | "total">) {
	return (
		<span className="muted counts">
			{matching === total
				? `${count(total)} ${total === 1 ? "resource" : "resources"}`
				: `${count(matching)} of ${count(total)} resources`}
		</span>
	);
}

function withoutEmpty(search: TableSearch): TableSearch {
	return Object.fromEntries(
		Object.entries(search).filter(([, value]) => value !== undefined && value !== ""),
	);
}
