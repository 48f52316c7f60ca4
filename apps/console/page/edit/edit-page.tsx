import { contentOf, type KnownType, type KnownTypes } from "@plinth/documents";
import { toYaml } from "@plinth/documents/yaml";
import type { Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useTypes } from "../app/types-query.ts";
import { LiveBadge } from "../parts/live-badge.tsx";
import { useLiveResource } from "../resource/use-live-resource.ts";
import { EditorPane } from "./editor-pane.tsx";

const route = getRouteApi("/types/$type/$name/edit");

/** Edits one resource. */
export function EditPage() {
	const { type: key, name } = route.useParams();
	const types = useTypes();
	const type = types?.byKey.get(key);
	return types === undefined ? null : type === undefined ? (
		<div className="page">
			<h1>{name}</h1>
			<p>The server has no type {key}, or you may not use it.</p>
		</div>
	) : (
		<Editor key={`${key} ${name}`} type={type} types={types} name={name} />
	);
}

function Editor({
	type,
	types,
	name,
}: {
	readonly type: KnownType;
	readonly types: KnownTypes;
	readonly name: string;
}) {
	const search = route.useSearch();
	const navigate = route.useNavigate();
	const { partition = "", namespace = "" } = search;
	const place = useMemo(() => ({ partition, namespace }), [partition, namespace]);
	const id = useMemo(() => idOf(type, name, place), [type, name, place]);
	const { resource, isGone, state } = useLiveResource(id);
	// What is edited stays what it was when the page was opened.
	const [first, setFirst] = useState<Resource>();
	useEffect(() => setFirst((before) => before ?? resource), [resource]);
	const link = { params: { type: type.key, name }, search };
	return (
		<div className="page fills">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/types/$type/$name" {...link}>
						{type.type.kind} {name}
					</Link>
				</span>
				<h1>Edit</h1>
				<LiveBadge state={state} />
			</div>
			{state.phase === "refused" && (
				<p className="notice bad" role="alert">
					{state.reason}
				</p>
			)}
			{isGone && (
				<p className="notice bad" role="alert">
					There is no such resource{first && " any more"}.
				</p>
			)}
			{first !== undefined && (
				<EditorPane
					{...{ type, types, place }}
					resource={first}
					newest={resource}
					initialText={toYaml(contentOf(first, types))}
					onSaved={() => void navigate({ to: "/types/$type/$name", ...link })}
				/>
			)}
		</div>
	);
}
