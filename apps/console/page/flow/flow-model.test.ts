import { expect, it } from "vitest";
import { dashSeconds, flowGraph } from "./flow-model.ts";

it("leads from what a controller watches to the controller, and from it to the type that it manages", () => {
	const { nodes, edges } = flowGraph(
		[
			{ name: "prober", manages: "catalog.v1.HealthCheck", watches: ["catalog.v1.Workload"] },
			{
				name: "endpoints",
				manages: "catalog.v1.Service",
				watches: ["catalog.v1.Workload", "clock"],
			},
		],
		(name) => name.startsWith("catalog."),
	);
	expect(nodes.map(({ id }) => id)).toEqual([
		"controller prober",
		"type catalog.v1.Workload",
		"type catalog.v1.HealthCheck",
		"controller endpoints",
		"other clock",
		"type catalog.v1.Service",
	]);
	expect(edges.map(({ kind, from, to }) => `${from} ${kind} ${to}`)).toEqual([
		"type catalog.v1.Workload watches controller prober",
		"controller prober manages type catalog.v1.HealthCheck",
		"type catalog.v1.Workload watches controller endpoints",
		"other clock watches controller endpoints",
		"controller endpoints manages type catalog.v1.Service",
	]);
});

it("tells a controller from a type with its name, and draws a limited number", () => {
	const controllers = Array.from({ length: 1_000 }, (_, at) => ({
		...{ name: at === 0 ? "a.v1.B" : `c${at}`, manages: "a.v1.B", watches: ["a.v1.B"] },
	}));
	const { nodes, edges } = flowGraph(controllers, () => true);
	expect([nodes.length, edges.length]).toEqual([101, 200]);
});

it("moves faster the more flows, within limits", () => {
	expect([0, 0.01, 1, 4, 1e6].map(dashSeconds)).toEqual([undefined, 3, 1, 0.5, 0.2]);
});
