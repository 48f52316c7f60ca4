import type { KnownType, KnownTypes } from "@plinth/documents";
import { toYaml } from "@plinth/documents/yaml";
import { hasNamespace, hasPartition } from "@plinth/resource";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTypes } from "../app/types-query.ts";
import { EditorPane } from "./editor-pane.tsx";

const route = getRouteApi("/create/$type");

/** Creates a resource of a type. */
export function CreatePage() {
	const { type: key } = route.useParams();
	const types = useTypes();
	const type = types?.byKey.get(key);
	return types === undefined ? null : type === undefined ? (
		<div className="page">
			<h1>Create</h1>
			<p>The server has no type {key}, or you may not use it.</p>
		</div>
	) : (
		<Creator key={key} type={type} types={types} />
	);
}

function Creator({ type, types }: { readonly type: KnownType; readonly types: KnownTypes }) {
	const { partition = "default", namespace = "default" } = route.useSearch();
	const navigate = route.useNavigate();
	const place = useMemo(() => ({ partition, namespace }), [partition, namespace]);
	return (
		<div className="page fills">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/types/$type" params={{ type: type.key }}>
						{type.type.kind}
					</Link>
				</span>
				<h1>Create {type.type.kind}</h1>
			</div>
			<EditorPane
				{...{ type, types, place }}
				initialText={emptyDocument(type, place)}
				onSaved={({ id }) => {
					const { partition: inPartition = "", namespace: inNamespace = "" } = id?.tenancy ?? {};
					void navigate({
						to: "/types/$type/$name",
						params: { type: type.key, name: id?.name ?? "" },
						search: { partition: inPartition, namespace: inNamespace },
					});
				}}
			/>
		</div>
	);
}

/** A document to begin with. */
function emptyDocument(
	{ key, scope, schema }: KnownType,
	{ partition, namespace }: { readonly partition: string; readonly namespace: string },
): string {
	const fields = schema.fields.map(({ name }) => name).join(", ");
	const head = toYaml({
		type: key,
		name: "",
		...(hasPartition(scope) && { partition }),
		...(hasNamespace(scope) && { namespace }),
	});
	return `${head}data:\n  # ${fields}\n`;
}
