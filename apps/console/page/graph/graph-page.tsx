import { idAt, type KnownType, type KnownTypes } from "@plinth/documents";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { useConnection } from "../app/connection.ts";
import { useTypes } from "../app/types-query.ts";
import { useLive } from "../live/live-context.ts";
import { plural } from "../model/format.ts";
import { GraphCanvas } from "./graph-canvas.tsx";
import type { EdgeKind } from "./graph-model.ts";
import { GraphSession } from "./graph-session.ts";

const route = getRouteApi("/types/$type/$name/graph");

/** The resources around one, with their owners and references. */
export function GraphPage() {
	const { type: key, name } = route.useParams();
	const types = useTypes();
	const type = types?.byKey.get(key);
	return types === undefined ? null : type === undefined ? (
		<div className="page">
			<h1>{name}</h1>
			<p>The server has no type {key}, or you may not use it.</p>
		</div>
	) : (
		<Graph type={type} types={types} name={name} />
	);
}

function Graph({
	type,
	types,
	name,
}: {
	readonly type: KnownType;
	readonly types: KnownTypes;
	readonly name: string;
}) {
	const search = route.useSearch();
	const { partition = "", namespace = "" } = search;
	const session = useSession(type, types, name, partition, namespace);
	const { view, problem } = useSyncExternalStore(session.subscribe, session.snapshot);
	const stuck = view.nodes.filter(({ isStuck }) => isStuck).length;
	return (
		<div className="page fills">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/types/$type/$name" params={{ type: type.key, name }} search={search}>
						{type.type.kind} {name}
					</Link>
				</span>
				<h1>Graph</h1>
				<span className="muted">{plural(view.nodes.length, "resource")}</span>
				{stuck > 0 && <span className="bad-text">{stuckText(stuck)}</span>}
				{view.isCut && (
					<span className="muted">There are more than can be drawn: fold some of them.</span>
				)}
				<Legend hasStuck={stuck > 0} />
			</div>
			{problem !== "" && (
				<p className="notice bad" role="alert">
					{problem}
				</p>
			)}
			<GraphCanvas view={view} session={session} types={types} />
		</div>
	);
}

function useSession(
	type: KnownType,
	types: KnownTypes,
	name: string,
	partition: string,
	namespace: string,
): GraphSession {
	const connection = useConnection();
	const live = useLive();
	const session = useMemo(() => {
		const { tenancy } = idAt(type, name, { partition, namespace });
		return new GraphSession(connection, live, types, {
			...{ group: type.type.group, kind: type.type.kind, name, region: "" },
			...{ partition: tenancy?.partition ?? "", namespace: tenancy?.namespace ?? "" },
		});
	}, [connection, live, type, types, name, partition, namespace]);
	useEffect(() => session.open(), [session]);
	return session;
}

function stuckText(stuck: number): string {
	return stuck === 1
		? "The deletion waits for what the red node says."
		: "The deletion waits along the red path. Its last node says for what.";
}

/** What each kind of edge means. The target is the resource that the arrow leads to. */
const edgeMeanings: readonly (readonly [kind: EdgeKind, meaning: string])[] = [
	["owns", "owns"],
	["block", "references, and blocks the deletion of the target"],
	["cascade", "references, and is deleted with the target"],
	["unset", "references, and is cleared when the target is deleted"],
];

function Legend({ hasStuck }: { readonly hasStuck: boolean }) {
	return (
		<ul className="legend" aria-label="Edges">
			{edgeMeanings.map(([kind, meaning]) => (
				<li key={kind}>
					<svg viewBox="0 0 30 8" aria-hidden="true">
						<path className={`edge-${kind}`} d="M1 4H29" />
					</svg>
					{meaning}
				</li>
			))}
			{hasStuck && (
				<li>
					<svg viewBox="0 0 30 8" aria-hidden="true">
						<path className="edge-stuck" d="M1 4H29" />
					</svg>
					a deletion waits along it
				</li>
			)}
		</ul>
	);
}
