import type { KnownTypes } from "@plinth/documents";
import { ControllerService } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useConnection } from "../app/connection.ts";
import { useTypes } from "../app/types-query.ts";
import { plural } from "../model/format.ts";
import { useOverview } from "../overview/use-overview.ts";
import { ErrorNotice } from "../parts/error-notice.tsx";
import { LiveBadge } from "../parts/live-badge.tsx";
import { FlowCanvas } from "./flow-canvas.tsx";
import { flowGraph, mostControllers } from "./flow-model.ts";

/** The controllers, with the types that they watch and manage. */
export function FlowPage() {
	const types = useTypes();
	return types === undefined ? null : <Flow types={types} />;
}

function Flow({ types }: { readonly types: KnownTypes }) {
	const connection = useConnection();
	const { overview, state } = useOverview();
	const { data, error } = useQuery({
		queryKey: ["controllers"],
		queryFn: ({ signal }) => connection.client(ControllerService).listControllers({}, { signal }),
	});
	const graph = useMemo(
		() => flowGraph(data?.controllers ?? [], (name) => types.byKey.has(name)),
		[data, types],
	);
	const controllers = data?.controllers.length ?? 0;
	return (
		<div className="page fills">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/controllers">Controllers</Link>
				</span>
				<h1>Graph</h1>
				<LiveBadge state={state} />
				<span className="muted">{plural(controllers, "controller")}</span>
				{controllers > mostControllers && (
					<span className="muted">The first {mostControllers} are drawn.</span>
				)}
				<Legend />
			</div>
			{error !== null && <ErrorNotice error={error} what="the controllers" />}
			<FlowCanvas graph={graph} types={types} overview={overview} />
		</div>
	);
}

function Legend() {
	return (
		<ul className="legend" aria-label="Arrows">
			{(["watches", "manages"] as const).map((kind) => (
				<li key={kind}>
					<svg aria-hidden="true">
						<path className={`edge-${kind}`} d="M0 4h30" />
					</svg>
					{kind === "watches" ? "is watched by" : "manages"}
				</li>
			))}
			<li>
				<svg aria-hidden="true">
					<path className="edge-moving" d="M0 4h30" />
				</svg>
				active now
			</li>
		</ul>
	);
}
