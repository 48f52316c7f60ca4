import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";

/** How one resource depends on another. */
export type EdgeKind = "owns" | "block" | "cascade" | "unset";

/** An edge from one resource to another: from an owner to what it owns, or from what references to its target. */
export interface Relation {
	readonly from: ResourceName;
	readonly to: ResourceName;
	readonly kind: EdgeKind;
	/** The fields that reference the target. */
	readonly paths: readonly string[];
}

/** What names a resource in a graph. */
export type ResourceName = Omit<ResourceKey, "$typeName" | "$unknown">;

/** What is known of the surroundings of a resource. */
export interface Surroundings {
	readonly relations: readonly Relation[];
	/** How many more there are that are not known. */
	readonly hidden: number;
}

/** A resource that is drawn. */
export interface GraphNode {
	readonly id: string;
	readonly name: ResourceName;
	/** Whether it is the resource whose surroundings are shown. */
	readonly isRoot: boolean;
	readonly isExpanded: boolean;
	/** Whether it is on the way from a deletion that waits to what it waits for. */
	readonly isStuck: boolean;
	/** Whether it is being deleted, as far as that is known: of what is on that way. */
	readonly isMarked: boolean;
	/** Why it is still there, if it is on that way; otherwise empty. */
	readonly note: string;
}

/** A resource on the way from a deletion to what it waits for. */
export interface Waiting {
	readonly name: ResourceName;
	/** The next ones on that way. */
	readonly waitsFor: readonly ResourceName[];
	/** Whether it is being deleted itself. */
	readonly isMarked: boolean;
	/** Why it is still there, for people. */
	readonly note: string;
}

/** Resources with the same relation to one, which are drawn as one. */
export interface GraphCluster {
	readonly id: string;
	/** The resource that all of them belong to. */
	readonly of: string;
	readonly kind: string;
	readonly count: number;
}

/** An edge that is drawn. */
export interface GraphEdge {
	readonly id: string;
	readonly from: string;
	readonly to: string;
	readonly kind: EdgeKind;
	readonly paths: readonly string[];
	readonly isStuck: boolean;
}

/** What is drawn. */
export interface GraphView {
	readonly nodes: readonly GraphNode[];
	readonly clusters: readonly GraphCluster[];
	readonly edges: readonly GraphEdge[];
	/** Whether resources are left out because there would be too many elements. */
	readonly isCut: boolean;
}

/** The limits of a graph: what is known, what is drawn, and how many resources of a kind around one are drawn one by one. */
export const graphLimits = { known: 2_000, drawn: 300, together: 12 } as const;

/** Identifies a resource in a graph. */
export function nodeId({ group, kind, partition, namespace, name, region }: ResourceName): string {
	return [group, kind, partition, namespace, name, region].join("/");
}

/**
 * The resources around one, as far as they were expanded.
 *
 * Invariants: every known relation was told by the surroundings of an expanded resource; what is drawn is reached from the root
 * over expanded resources.
 */
export class GraphModel {
	readonly root: ResourceName;
	readonly #around = new Map<string, Surroundings>();
	readonly #opened = new Set<string>();
	/** What is on the way from a deletion to what it waits for, by ids. */
	#waits: ReadonlyMap<string, Waiting & { readonly ids: ReadonlySet<string> }> = new Map();

	constructor(root: ResourceName) {
		this.root = root;
	}

	/** Sets what is around a resource, which counts as expanded from then on. Ignored if too much is known. */
	surround(name: ResourceName, surroundings: Surroundings): void {
		const id = nodeId(name);
		const known = [...this.#around].reduce(
			(sum, [of, { relations }]) => sum + (of === id ? 0 : relations.length),
			0,
		);
		const relations = surroundings.relations.slice(0, Math.max(0, graphLimits.known - known));
		this.#around.set(id, { ...surroundings, relations });
	}

	/** Draws what is around a resource no longer. */
	collapse(id: string): void {
		if (id !== nodeId(this.root)) {
			this.#around.delete(id);
		}
	}

	/** Draws the resources of a cluster one by one. */
	openCluster(id: string): void {
		this.#opened.add(id);
	}

	/** Sets what is on the way from a deletion to what it waits for, the ends included. */
	wait(waits: readonly Waiting[]): void {
		this.#waits = new Map(
			waits.map((each) => [
				nodeId(each.name),
				{ ...each, ids: new Set(each.waitsFor.map(nodeId)) },
			]),
		);
	}

	/** What is drawn. */
	view(): GraphView {
		const drawn = new Map<string, ResourceName>([[nodeId(this.root), this.root]]);
		const clusters = new Map<string, GraphCluster>();
		const edges = new Map<string, GraphEdge>();
		let isCut = false;
		for (const id of drawn.keys()) {
			for (const [clusterId, group] of this.#groups(id)) {
				const single = group.filter(
					({ from, to }) => this.#waits.has(nodeId(from)) && this.#waits.has(nodeId(to)),
				);
				const isTogether = group.length > graphLimits.together && !this.#opened.has(clusterId);
				for (const relation of isTogether ? single : group) {
					const other = otherOf(relation, id);
					if (!drawn.has(nodeId(other)) && drawn.size + clusters.size >= graphLimits.drawn) {
						isCut = true;
						continue;
					}
					drawn.set(nodeId(other), other);
					const edge = this.#edge(relation);
					edges.set(edge.id, edge);
				}
				const [first] = group;
				if (isTogether && first !== undefined && drawn.size + clusters.size < graphLimits.drawn) {
					const count = group.length - single.length;
					const { kind } = otherOf(first, id);
					clusters.set(clusterId, { id: clusterId, of: id, kind, count });
					const isFrom = nodeId(first.from) === id;
					const ends = isFrom ? { from: id, to: clusterId } : { from: clusterId, to: id };
					const edge = { ...ends, kind: first.kind, paths: [], isStuck: false };
					edges.set(clusterId, { ...edge, id: clusterId });
				}
			}
		}
		const nodes = [...drawn].map(([id, name]) => ({
			...{ id, name, isRoot: id === nodeId(this.root) },
			...{ isExpanded: this.#around.has(id), isStuck: this.#waits.has(id) },
			...{
				isMarked: this.#waits.get(id)?.isMarked ?? false,
				note: this.#waits.get(id)?.note ?? "",
			},
		}));
		return { nodes, clusters: [...clusters.values()], edges: [...edges.values()], isCut };
	}

	/** The relations of a resource, by direction, kind of relation and kind of the other resource. */
	#groups(id: string): ReadonlyMap<string, readonly Relation[]> {
		return Map.groupBy(this.#around.get(id)?.relations ?? [], (relation) => {
			const isFrom = nodeId(relation.from) === id;
			const other = otherOf(relation, id);
			return `${id} ${isFrom ? "to" : "from"} ${relation.kind} ${other.group}.${other.kind}`;
		});
	}

	#edge({ from, to, kind, paths }: Relation): GraphEdge {
		const [fromId, toId] = [nodeId(from), nodeId(to)];
		const isStuck =
			(this.#waits.get(fromId)?.ids.has(toId) ?? false) ||
			(this.#waits.get(toId)?.ids.has(fromId) ?? false);
		return { id: `${fromId} ${kind} ${toId}`, from: fromId, to: toId, kind, paths, isStuck };
	}
}

function otherOf({ from, to }: Relation, id: string): ResourceName {
	return nodeId(from) === id ? to : from;
}
