import ELK, { type ElkNode } from "elkjs/lib/elk-api.js";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";
import { trustedWorkerUrl } from "../live/worker-port.ts";

/** The size of a node without a note, in pixels. */
export const nodeSize = { width: 190, height: 46 } as const;

/** The size of a node with a note, in pixels. */
const notedNodeSize = { width: 250, height: 84 } as const;

/** The size of a node in pixels. */
export function sizeOf({ note = "" }: { readonly note?: string }) {
	return note === "" ? nodeSize : notedNodeSize;
}

/** Where arrows lead. */
export type Direction = "RIGHT" | "DOWN";

/** In pixels. */
export interface Point {
	readonly x: number;
	readonly y: number;
}

/** Where nodes and edges are, by their ids. */
export interface Positions {
	/** The upper left corner of each. */
	readonly nodes: ReadonlyMap<string, Point>;
	/** The points of the line of each. */
	readonly edges: ReadonlyMap<string, readonly Point[]>;
}

/** What is placed: nodes, and the edges between them. */
export interface Placeable {
	readonly nodes: readonly { readonly id: string; readonly note?: string }[];
	/** Other nodes. */
	readonly clusters: readonly { readonly id: string }[];
	readonly edges: readonly { readonly id: string; readonly from: string; readonly to: string }[];
}

/** How nodes are placed. */
export interface Placement {
	readonly direction: Direction;
	/** The space between two layers, in pixels. */
	readonly layerGap: number;
	/** The width of the whole by its height, to which parts that are not connected are arranged. */
	readonly aspectRatio: number;
}

/** Places nodes in layers, in a worker. */
export class Layout {
	readonly #elk = new ELK({ workerFactory: () => new Worker(trustedWorkerUrl(workerUrl)) });

	/** The positions of all nodes, clusters and edges. */
	async place(
		{ nodes, clusters, edges }: Placeable,
		{ direction, layerGap, aspectRatio }: Placement,
	): Promise<Positions> {
		const placed = await this.#elk.layout<ElkNode>({
			id: "root",
			layoutOptions: {
				"elk.algorithm": "layered",
				"elk.direction": direction,
				"elk.aspectRatio": String(aspectRatio),
				"elk.layered.spacing.nodeNodeBetweenLayers": String(layerGap),
				"elk.layered.spacing.edgeNodeBetweenLayers": "14",
				"elk.spacing.nodeNode": "18",
				"elk.spacing.componentComponent": "24",
				"elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
			},
			children: [
				...nodes.map((node) => ({ id: node.id, ...sizeOf(node) })),
				...clusters.map(({ id }) => ({ id, ...nodeSize })),
			],
			edges: edges.map(({ id, from, to }) => ({ id, sources: [from], targets: [to] })),
		});
		return {
			nodes: new Map(
				(placed.children ?? []).map(({ id, x = 0, y = 0 }) => [id, { x, y }] as const),
			),
			edges: new Map(
				(placed.edges ?? []).map(
					({ id, sections = [] }) =>
						[
							id,
							sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
								...[startPoint, ...bendPoints, endPoint],
							]),
						] as const,
				),
			),
		};
	}

	/** Ends the worker. */
	close(): void {
		this.#elk.terminateWorker();
	}
}
