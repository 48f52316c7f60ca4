import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import type { Point } from "./layout.ts";
import { middleOf, roundedPath } from "./route.ts";

/** An edge that is drawn where the layout has put it: around nodes, not across them. */
export type RoutedEdge = Edge<{ readonly route: readonly Point[] }, "routed">;

/** Draws the route of an edge. */
export function RoutedEdgeLine({ data, label, markerEnd, style }: EdgeProps<RoutedEdge>) {
	const route = data?.route ?? [];
	const [labelX, labelY] = middleOf(route);
	return (
		<BaseEdge
			path={roundedPath(route)}
			{...{ label, labelX, labelY }}
			{...(markerEnd !== undefined && { markerEnd })}
			{...(style !== undefined && { style })}
		/>
	);
}
