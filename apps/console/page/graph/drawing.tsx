import {
	Controls,
	type Edge,
	type Node,
	ReactFlow,
	type ReactFlowProps,
	ReactFlowProvider,
	useReactFlow,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useEffect } from "react";
import { ArrowDirection } from "./flow-handle.tsx";
import type { Direction, Positions } from "./layout.ts";
import { type RoutedEdge, RoutedEdgeLine } from "./routed-edge.tsx";

const edgeTypes = { routed: RoutedEdgeLine };

/** What a graph looks like. */
interface DrawingProps
	extends Pick<ReactFlowProps<Node, Edge>, "nodes" | "nodeTypes" | "onlyRenderVisibleElements"> {
	readonly edges: RoutedEdge[];
	/** For screen readers. */
	readonly label: string;
	/** Where arrows lead. */
	readonly direction: Direction;
	/** All of the graph is shown when they change. */
	readonly positions: Positions;
}

/** A graph that can be moved and zoomed, and not changed. */
export function Drawing(props: DrawingProps) {
	return (
		<ArrowDirection.Provider value={props.direction}>
			<ReactFlowProvider>
				<Flow {...props} />
			</ReactFlowProvider>
		</ArrowDirection.Provider>
	);
}

function Flow({ label, direction: _direction, positions, ...parts }: DrawingProps) {
	const flow = useReactFlow();
	useEffect(() => {
		if (positions.nodes.size > 0) {
			void flow.fitView({ padding: "24px", maxZoom: 1.2 });
		}
	}, [flow, positions]);
	return (
		<section className="graph" aria-label={label}>
			<ReactFlow
				{...parts}
				edgeTypes={edgeTypes}
				nodesDraggable={false}
				nodesConnectable={false}
				nodesFocusable={false}
				edgesFocusable={false}
				elementsSelectable={false}
				minZoom={0.1}
				proOptions={{ hideAttribution: true }}
			>
				<Controls showInteractive={false} fitViewOptions={{ padding: "24px", maxZoom: 1.2 }} />
			</ReactFlow>
		</section>
	);
}
