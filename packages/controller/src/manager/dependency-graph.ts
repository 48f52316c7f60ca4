import type { Controller } from "../define/controller.ts";

/** One controller's dependency: a change of `from` reconciles `to`. Both are keys of types. */
export interface Dependency {
	readonly from: string;
	readonly to: string;
	readonly controller: string;
}

/** Which types trigger reconciles of which others, and through which controllers. */
export interface DependencyGraph {
	/** The keys of all managed and watched types, sorted. */
	readonly types: readonly string[];
	readonly dependencies: readonly Dependency[];
	/**
	 * One cycle for each group of types that trigger each other: its types in dependency order, beginning
	 * with the alphabetically first.
	 */
	readonly cycles: readonly (readonly string[])[];
}

/** The graph of the controllers' managed and watched types. */
export function dependencyGraph(
	controllers: readonly Pick<Controller, "name" | "manages" | "watches">[],
): DependencyGraph {
	const types = new Set<string>();
	const dependencies: Dependency[] = [];
	for (const { name, manages, watches } of controllers) {
		types.add(manages.key);
		for (const watch of watches) {
			if (watch.kind === "resources") {
				types.add(watch.type.key);
				dependencies.push({ from: watch.type.key, to: manages.key, controller: name });
			}
		}
	}
	const sorted = [...types].sort();
	return { types: sorted, dependencies, cycles: findCycles(sorted, dependencies) };
}

/** The graph as a Mermaid flowchart; arrows point from the changed type to the reconciled one. */
export function toMermaid(graph: DependencyGraph): string {
	const node = new Map(graph.types.map((type, at) => [type, `t${at}`]));
	const lines = graph.types.map((type) => `  ${node.get(type)}["${type}"]`);
	for (const { from, to, controller } of graph.dependencies) {
		lines.push(
			`  ${node.get(from)} -- "${controller.replaceAll('"', "#quot;")}" --> ${node.get(to)}`,
		);
	}
	return ["flowchart LR", ...lines, ""].join("\n");
}

/** The shortest cycle through the first type of each group that is not on a cycle reported already. */
function findCycles(
	types: readonly string[],
	dependencies: readonly Dependency[],
): readonly (readonly string[])[] {
	const targets = new Map<string, string[]>();
	for (const { from, to } of dependencies) {
		targets.set(from, [...(targets.get(from) ?? []), to]);
	}
	const cycles: string[][] = [];
	const reported = new Set<string>();
	for (const type of types) {
		const cycle = reported.has(type) ? undefined : shortestCycle(type, targets);
		if (cycle !== undefined) {
			cycles.push(cycle);
			for (const member of cycle) {
				reported.add(member);
			}
		}
	}
	return cycles;
}

function shortestCycle(
	start: string,
	targets: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
	const cameFrom = new Map<string, string>();
	const queue = [start];
	for (const type of queue) {
		for (const next of targets.get(type) ?? []) {
			if (next === start) {
				return pathTo(type, cameFrom);
			}
			if (!cameFrom.has(next)) {
				cameFrom.set(next, type);
				queue.push(next);
			}
		}
	}
	return undefined;
}

function pathTo(end: string, cameFrom: ReadonlyMap<string, string>): string[] {
	const path: string[] = [];
	for (let at: string | undefined = end; at !== undefined; at = cameFrom.get(at)) {
		path.unshift(at);
	}
	return path;
}
