import type { KnownTypes } from "@plinth/documents";
import type {
	ControllerOverview,
	Overview,
	TypeOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { useNavigate } from "@tanstack/react-router";
import { MarkerType, type Node, type NodeProps } from "@xyflow/react";
import { memo, useMemo } from "react";
import { Drawing } from "../graph/drawing.tsx";
import { FlowHandle } from "../graph/flow-handle.tsx";
import { nodeSize, type Positions } from "../graph/layout.ts";
import type { RoutedEdge } from "../graph/routed-edge.tsx";
import { usePositions } from "../graph/use-positions.ts";
import { count, rate } from "../model/format.ts";
import type { Tone } from "../model/tone.ts";
import { kindOf, phaseTone } from "../overview/attention.ts";
import { dashSeconds, type FlowEdge, type FlowGraph, type FlowNode } from "./flow-model.ts";

/** The space between two layers, in pixels. */
const layerGap = 38;

type BoxNode = Node<
	{
		readonly node: FlowNode;
		readonly tone: Tone;
		/** What flows, and what is wrong, as in `6 false, 3 writes/s`. */
		readonly detail: string;
		/** Whether it has a page. */
		readonly hasPage: boolean;
	},
	"box"
>;

/** What is drawn, and what flows in it. */
interface FlowProps {
	readonly graph: FlowGraph;
	readonly types: KnownTypes;
	/** The newest rates; `undefined` before they are known. */
	readonly overview: Overview | undefined;
}

/** Draws controllers and types. It can be moved and zoomed. */
export function FlowCanvas({ graph, types, overview }: FlowProps) {
	const positions = usePositions(graph, "DOWN", layerGap);
	const rates = useMemo(() => new Rates(overview), [overview]);
	const nodes = useMemo(
		() => nodesOf(graph, positions, types, rates),
		[graph, positions, types, rates],
	);
	const edges = useMemo(() => edgesOf(graph, positions, rates), [graph, positions, rates]);
	return (
		<Drawing
			label="Controllers and types"
			direction="DOWN"
			{...{ nodes, edges, nodeTypes, positions }}
		/>
	);
}

/** What flows, per second, and what is wrong. */
class Rates {
	readonly #types: ReadonlyMap<string, TypeOverview>;
	readonly #controllers: ReadonlyMap<string, ControllerOverview>;

	constructor({ types = [], controllers = [] }: Partial<Overview> = {}) {
		this.#types = new Map(types.map((each) => [each.type, each]));
		this.#controllers = new Map(
			controllers.map((each) => [each.controller?.name ?? "", each] as const),
		);
	}

	writes(type: string): number {
		return this.#types.get(type)?.writesPerSecond ?? 0;
	}

	/** How many resources of a type have a false condition. */
	falseConditions(type: string): number {
		return Number(this.#types.get(type)?.withFalseCondition ?? 0n);
	}

	controller(name: string): ControllerOverview | undefined {
		return this.#controllers.get(name);
	}

	along({ kind, controller, type }: FlowEdge): number {
		return kind === "watches"
			? this.writes(type)
			: (this.controller(controller)?.reconcilesPerSecond ?? 0);
	}
}

function nodesOf(
	graph: FlowGraph,
	positions: Positions,
	types: KnownTypes,
	rates: Rates,
): BoxNode[] {
	return graph.nodes.flatMap((node): BoxNode[] => {
		const position = positions.nodes.get(node.id);
		const data = {
			node,
			tone: toneOf(node, rates),
			detail: detailOf(node, rates),
			hasPage: node.kind === "controller" || types.byKey.has(node.name),
		};
		return position === undefined
			? []
			: [{ id: node.id, type: "box", position, ...nodeSize, data }];
	});
}

function toneOf({ kind, name }: FlowNode, rates: Rates): Tone {
	if (kind === "type") {
		return rates.falseConditions(name) > 0 ? "bad" : "plain";
	}
	const of = kind === "controller" ? rates.controller(name) : undefined;
	if (of?.controller === undefined) {
		return "plain";
	}
	return (of.controller.requests?.failing ?? 0) > 0 ? "bad" : phaseTone(of.controller.phase);
}

function detailOf({ kind, name }: FlowNode, rates: Rates): string {
	switch (kind) {
		case "controller":
			return `${rate(rates.controller(name)?.reconcilesPerSecond ?? 0)} reconciles/s`;
		case "type":
			return withFalse(rates.falseConditions(name), `${rate(rates.writes(name))} writes/s`);
		case "other":
			return "source without a type";
	}
}

function withFalse(falseConditions: number, text: string): string {
	return falseConditions === 0 ? text : `${count(falseConditions)} false, ${text}`;
}

function edgesOf(graph: FlowGraph, positions: Positions, rates: Rates): RoutedEdge[] {
	return graph.edges.flatMap((edge): RoutedEdge[] => {
		const route = positions.edges.get(edge.id);
		if (route === undefined) {
			return [];
		}
		const seconds = dashSeconds(rates.along(edge));
		return [
			{
				...{ id: edge.id, type: "routed", source: edge.from, target: edge.to, data: { route } },
				className: `flow-edge edge-${edge.kind}`,
				...(seconds !== undefined && {
					animated: true,
					style: { animationDuration: `${seconds}s` },
				}),
				markerEnd: {
					...{ type: MarkerType.ArrowClosed, width: 16, height: 16, markerUnits: "userSpaceOnUse" },
					color: edge.kind === "watches" ? "var(--muted)" : "var(--accent)",
				},
			},
		];
	});
}

const Box = memo(function Box({ data: { node, tone, detail, hasPage } }: NodeProps<BoxNode>) {
	const navigate = useNavigate();
	const { kind, name } = node;
	const open = () =>
		void (kind === "controller"
			? navigate({ to: "/controllers/$name", params: { name } })
			: navigate({ to: "/types/$type", params: { type: name } }));
	return (
		<div className={`graph-node ${kind} ${tone}`} data-node={name}>
			<FlowHandle type="target" />
			<button
				type="button"
				className="graph-name nodrag"
				disabled={!hasPage}
				title={
					kind === "other" ? `${name}: watched, but not a type of resources` : `${kind} ${name}`
				}
				onClick={open}
			>
				<span>{kind === "type" ? kindOf(name) : name}</span>
				<span className="muted">{detail}</span>
			</button>
			<FlowHandle type="source" />
		</div>
	);
});

const nodeTypes = { box: Box };
