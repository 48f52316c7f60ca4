import { useEffect, useState } from "react";
import { useIsTall } from "../parts/use-is-tall.ts";
import { type Direction, Layout, type Placeable, type Positions } from "./layout.ts";

/** The width of a graph by its height, about as in a window. */
const aspectRatios = { wide: 1.7, tall: 0.9 } as const;

const nothing: Positions = { nodes: new Map(), edges: new Map() };

/**
 * The positions of the newest graph that was laid out.
 *
 * @param graph - each other object is laid out.
 * @param layerGap - the space between two layers, in pixels.
 */
export function usePositions(graph: Placeable, direction: Direction, layerGap: number): Positions {
	const isTall = useIsTall();
	const [layout, setLayout] = useState<Layout>();
	const [positions, setPositions] = useState(nothing);
	useEffect(() => {
		const opened = new Layout();
		setLayout(opened);
		return () => opened.close();
	}, []);
	useEffect(() => {
		let isCurrent = true;
		const aspectRatio = aspectRatios[isTall ? "tall" : "wide"];
		// Not placed if the page is left meanwhile.
		layout?.place(graph, { direction, layerGap, aspectRatio }).then(
			(placed) => isCurrent && setPositions(placed),
			() => {},
		);
		return () => {
			isCurrent = false;
		};
	}, [layout, graph, direction, layerGap, isTall]);
	return positions;
}
