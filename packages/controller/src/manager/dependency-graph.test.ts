import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, type DemoType, demoType, Label } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { dependencyGraph, toMermaid } from "./dependency-graph.ts";

function controller(name: string, manages: DemoType, ...watched: DemoType[]) {
	const watches = watched.map((type) => watch(type, { map: mapOwner }));
	return defineController({ name, manages, watches, reconcile: async () => {} });
}

const Chart = demoType("Chart");

describe("dependencyGraph", () => {
	it("points from what changes to what is reconciled", () => {
		const graph = dependencyGraph([controller("artist", Artist, Album, Label)]);
		expect(graph.dependencies).toEqual([
			{ from: "demo.v1.Album", to: "demo.v1.Artist", controller: "artist" },
			{ from: "demo.v1.Label", to: "demo.v1.Artist", controller: "artist" },
		]);
		expect(graph.cycles).toEqual([]);
	});

	it("finds types that trigger each other, over any number of controllers", () => {
		const graph = dependencyGraph([
			controller("artist", Artist, Album),
			controller("label", Label, Artist),
			controller("album", Album, Label),
			controller("chart", Chart, Artist),
		]);
		expect(graph.cycles).toEqual([["demo.v1.Album", "demo.v1.Artist", "demo.v1.Label"]]);
	});

	it("reports separate cycles separately", () => {
		const graph = dependencyGraph([
			controller("artist", Artist, Album),
			controller("album", Album, Artist),
			controller("label", Label, Chart),
			controller("chart", Chart, Label),
		]);
		expect(graph.cycles).toEqual([
			["demo.v1.Album", "demo.v1.Artist"],
			["demo.v1.Chart", "demo.v1.Label"],
		]);
	});

	it("prints as a Mermaid flowchart", () => {
		const graph = dependencyGraph([controller("artist", Artist, Album)]);
		expect(toMermaid(graph)).toBe(
			[
				"flowchart LR",
				'  t0["demo.v1.Album"]',
				'  t1["demo.v1.Artist"]',
				'  t0 -- "artist" --> t1',
				"",
			].join("\n"),
		);
	});
});
