import { commentOf, documentOf, type KnownTypes, showData } from "@plinth/documents";
import { toYaml } from "@plinth/documents/yaml";
import type { Resource } from "@plinth/proto";
import { useMemo } from "react";
import { Card } from "../parts/card.tsx";
import { Comment, JsonTree } from "../parts/json-tree.tsx";
import { useCommentsShown } from "./comments-shown.ts";

/** The data of a resource as a tree, with the comments of its type, and the whole resource as YAML. */
export function Data({
	resource,
	types,
}: {
	readonly resource: Resource;
	readonly types: KnownTypes;
}) {
	const { json, message, error } = showData(resource.data, types);
	const hasComments = message?.file.proto.sourceCodeInfo !== undefined;
	const [isShown, toggle] = useCommentsShown();
	const described = hasComments && isShown ? message : undefined;
	const yaml = useMemo(() => toYaml(documentOf(resource, types)), [resource, types]);
	return (
		<>
			<Card
				title="Data"
				aside={
					hasComments ? (
						<button type="button" onClick={toggle}>
							{isShown ? "Hide comments" : "Show comments"}
						</button>
					) : undefined
				}
			>
				{described && <Comment text={commentOf(described)} />}
				{error !== undefined && <p className="notice bad">The data {error}</p>}
				<JsonTree value={json} shape={described && { message: described, isMany: false }} />
			</Card>
			<Card
				title="YAML"
				aside={
					<button type="button" onClick={() => void navigator.clipboard?.writeText(yaml)}>
						Copy
					</button>
				}
			>
				{/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
				<pre className="yaml" role="region" tabIndex={0} aria-label="The resource as YAML">
					{yaml}
				</pre>
			</Card>
		</>
	);
}
