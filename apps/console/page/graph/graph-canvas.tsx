import type { KnownTypes } from "@plinth/documents";
import { useNavigate } from "@tanstack/react-router";
import { MarkerType, type Node, type NodeProps } from "@xyflow/react";
import { createContext, memo, useContext, useMemo } from "react";
import { typeOfFamily } from "../model/known-types.ts";
import { useIsTall } from "../parts/use-is-tall.ts";
import { Drawing } from "./drawing.tsx";
import { FlowHandle } from "./flow-handle.tsx";
import type { EdgeKind, GraphCluster, GraphNode, GraphView } from "./graph-model.ts";
import type { GraphSession } from "./graph-session.ts";
import { nodeSize, type Positions, sizeOf } from "./layout.ts";
import type { RoutedEdge } from "./routed-edge.tsx";
import { usePositions } from "./use-positions.ts";

type ResourceNode = Node<{ readonly node: GraphNode }, "resource">;
type ClusterNode = Node<{ readonly cluster: GraphCluster }, "cluster">;

/** What the nodes of a canvas do. */
interface CanvasActions {
	readonly session: GraphSession;
	readonly types: KnownTypes;
}

const Actions = createContext<CanvasActions | undefined>(undefined);

function useActions(): CanvasActions {
	const actions = useContext(Actions);
	if (actions === undefined) {
		throw new Error("the node is not within a canvas");
	}
	return actions;
}

/** Draws a graph. It can be moved and zoomed. */
export function GraphCanvas({
	view,
	session,
	types,
}: CanvasActions & { readonly view: GraphView }) {
	const direction = useIsTall() ? "DOWN" : "RIGHT";
	const positions = usePositions(view, direction, direction === "DOWN" ? 60 : 90);
	const actions = useMemo(() => ({ session, types }), [session, types]);
	const nodes = useMemo(() => nodesOf(view, positions), [view, positions]);
	const edges = useMemo(() => edgesOf(view, positions), [view, positions]);
	return (
		<Actions.Provider value={actions}>
			<Drawing
				label="Graph"
				onlyRenderVisibleElements
				{...{ direction, nodes, edges, nodeTypes, positions }}
			/>
		</Actions.Provider>
	);
}

/** As the lines in the styles. */
const arrowColors: Readonly<Record<EdgeKind, string>> = {
	owns: "var(--muted)",
	block: "var(--unsure)",
	cascade: "var(--accent)",
	unset: "var(--good)",
};

/** What was not placed yet is not drawn. */
function nodesOf(view: GraphView, positions: Positions): (ResourceNode | ClusterNode)[] {
	return [
		...view.nodes.flatMap((node): ResourceNode[] => {
			const position = positions.nodes.get(node.id);
			return position === undefined
				? []
				: [{ id: node.id, type: "resource", position, ...sizeOf(node), data: { node } }];
		}),
		...view.clusters.flatMap((cluster): ClusterNode[] => {
			const position = positions.nodes.get(cluster.id);
			return position === undefined
				? []
				: [{ id: cluster.id, type: "cluster", position, ...nodeSize, data: { cluster } }];
		}),
	];
}

function edgesOf(view: GraphView, positions: Positions): RoutedEdge[] {
	return view.edges.flatMap(({ id, from, to, kind, paths, isStuck }): RoutedEdge[] => {
		const route = positions.edges.get(id);
		if (route === undefined) {
			return [];
		}
		return [
			{
				...{ id, type: "routed", source: from, target: to, data: { route } },
				className: isStuck ? `edge-${kind} stuck` : `edge-${kind}`,
				...(paths.length > 0 && { label: paths.join(", ") }),
				markerEnd: {
					...{ type: MarkerType.ArrowClosed, width: 16, height: 16, markerUnits: "userSpaceOnUse" },
					color: isStuck ? "var(--bad)" : arrowColors[kind],
				},
			},
		];
	});
}

const ResourceBox = memo(function ResourceBox({ data: { node } }: NodeProps<ResourceNode>) {
	const { session, types } = useActions();
	const navigate = useNavigate();
	const { id, name, isRoot, isExpanded, isStuck, isMarked, note } = node;
	const type = typeOfFamily(types, name);
	const place = [name.partition, name.namespace, name.region].filter(Boolean).join("/");
	return (
		<div
			className={`graph-node${isRoot ? " root" : ""}${isStuck ? " stuck" : ""}`}
			data-node={name.name}
		>
			<FlowHandle type="target" />
			<button
				type="button"
				className="graph-name nodrag"
				disabled={type === undefined}
				title={`${name.kind} ${place}/${name.name}${note === "" ? "" : `: ${note}`}`}
				onClick={() =>
					type &&
					void navigate({
						to: "/types/$type/$name",
						params: { type: type.key, name: name.name },
						search: { partition: name.partition, namespace: name.namespace },
					})
				}
			>
				<span className="muted">
					{name.kind}
					{name.region !== "" && ` in ${name.region}`}
					{isMarked && ", being deleted"}
				</span>
				<span>{name.name}</span>
				{note !== "" && <span className="graph-note">{note}</span>}
			</button>
			{type !== undefined && (
				<button
					type="button"
					className="graph-expand nodrag"
					aria-label={`${isExpanded ? "Fold" : "Expand"} ${name.kind} ${name.name}`}
					onClick={() => (isExpanded ? session.collapse(id) : session.expand(name))}
				>
					{isExpanded ? "−" : "+"}
				</button>
			)}
			<FlowHandle type="source" />
		</div>
	);
});

const ClusterBox = memo(function ClusterBox({ data: { cluster } }: NodeProps<ClusterNode>) {
	const { session } = useActions();
	return (
		<div className="graph-node cluster">
			<FlowHandle type="target" />
			<button
				type="button"
				className="graph-name nodrag"
				onClick={() => session.openCluster(cluster.id)}
			>
				<span className="muted">{cluster.kind}</span>
				<span>{cluster.count} resources</span>
			</button>
			<FlowHandle type="source" />
		</div>
	);
});

const nodeTypes = { resource: ResourceBox, cluster: ClusterBox };
