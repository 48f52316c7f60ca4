import type { Controller } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";

/** A type, a controller, or something else that a controller watches. */
export interface FlowNode {
	readonly id: string;
	readonly kind: "type" | "controller" | "other";
	readonly name: string;
}

/** From what is watched to the controller, or from a controller to the type that it manages. */
export interface FlowEdge {
	readonly id: string;
	readonly kind: "watches" | "manages";
	readonly from: string;
	readonly to: string;
	readonly controller: string;
	/** The watched or managed type. */
	readonly type: string;
}

/** What is drawn. */
export interface FlowGraph {
	readonly nodes: readonly FlowNode[];
	readonly clusters: readonly [];
	readonly edges: readonly FlowEdge[];
}

/** So many controllers are drawn. */
export const mostControllers = 100;

/** The graph of controllers and their types. @param isType - whether a name is that of a type. */
export function flowGraph(
	controllers: readonly Pick<Controller, "name" | "manages" | "watches">[],
	isType: (name: string) => boolean,
): FlowGraph {
	const nodes = new Map<string, FlowNode>();
	const edges = new Map<string, FlowEdge>();
	const add = (kind: FlowNode["kind"], name: string): string => {
		const id = `${kind} ${name}`;
		nodes.set(id, { id, kind, name });
		return id;
	};
	for (const { name, manages, watches } of controllers.slice(0, mostControllers)) {
		const controller = add("controller", name);
		for (const each of watches) {
			const from = add(isType(each) ? "type" : "other", each);
			const id = `${from} to ${controller}`;
			edges.set(id, { id, kind: "watches", from, to: controller, controller: name, type: each });
		}
		const to = add("type", manages);
		const id = `${controller} to ${to}`;
		edges.set(id, { id, kind: "manages", from: controller, to, controller: name, type: manages });
	}
	return { nodes: [...nodes.values()], clusters: [], edges: [...edges.values()] };
}

/** How long a dash takes along an arrow, in seconds: the shorter the more flows. `undefined` if nothing does. */
export function dashSeconds(perSecond: number): number | undefined {
	return perSecond <= 0 ? undefined : Math.min(3, Math.max(0.2, 1 / Math.sqrt(perSecond)));
}
