import { describe, expect, it } from "vitest";
import {
	type EdgeKind,
	GraphModel,
	graphLimits,
	nodeId,
	type Relation,
	type ResourceName,
} from "./graph-model.ts";

function named(name: string, kind = "Film"): ResourceName {
	return { group: "demo", kind, partition: "p", namespace: "n", name, region: "" };
}

function relation(from: ResourceName, kind: EdgeKind, to: ResourceName): Relation {
	return { from, to, kind, paths: [] };
}

const root = named("root");

function names(model: GraphModel): readonly string[] {
	return model.view().nodes.map(({ name }) => name.name);
}

describe("GraphModel", () => {
	it("has the root, and what is around it once that is known", () => {
		const model = new GraphModel(root);
		expect(names(model)).toEqual(["root"]);
		model.surround(root, {
			relations: [relation(named("a"), "block", root), relation(root, "owns", named("b"))],
			hidden: 0,
		});
		expect(names(model)).toEqual(["root", "a", "b"]);
		expect(model.view().edges.map(({ from, kind, to }) => [from, kind, to])).toEqual([
			[nodeId(named("a")), "block", nodeId(root)],
			[nodeId(root), "owns", nodeId(named("b"))],
		]);
	});

	it("has an edge once that both ends tell about, and loses what is only around what was collapsed", () => {
		const model = new GraphModel(root);
		const [a, b] = [named("a"), named("b")];
		model.surround(root, { relations: [relation(a, "cascade", root)], hidden: 0 });
		model.surround(a, {
			relations: [relation(a, "cascade", root), relation(b, "unset", a)],
			hidden: 0,
		});
		expect(names(model)).toEqual(["root", "a", "b"]);
		expect(model.view().edges.length).toBe(2);
		model.collapse(nodeId(a));
		expect(names(model)).toEqual(["root", "a"]);
		model.collapse(nodeId(root));
		expect(names(model)).toEqual(["root", "a"]);
	});

	it("draws many of a kind as one, until that is opened, and those that a deletion waits for apart", () => {
		const model = new GraphModel(root);
		const many = Array.from({ length: 40 }, (_, at) => named(`m${at}`, "Screening"));
		model.surround(root, {
			relations: many.map((each) => relation(each, "block", root)),
			hidden: 0,
		});
		expect(names(model)).toEqual(["root"]);
		const [cluster] = model.view().clusters;
		expect(cluster).toMatchObject({ kind: "Screening", count: 40 });
		const last = named("m7", "Screening");
		model.wait([
			{ name: root, waitsFor: [last], isMarked: true, note: "waits for Screening m7" },
			{ name: last, waitsFor: [], isMarked: false, note: "blocks the deletion" },
		]);
		expect(model.view().nodes.map(({ note, isMarked }) => [note, isMarked])).toEqual([
			["waits for Screening m7", true],
			["blocks the deletion", false],
		]);
		expect(names(model)).toEqual(["root", "m7"]);
		expect(model.view().clusters).toMatchObject([{ count: 39 }]);
		expect(model.view().edges.filter(({ isStuck }) => isStuck).length).toBe(1);
		model.openCluster(cluster?.id ?? "");
		expect(names(model).length).toBe(41);
	});

	it("never draws more elements than it may, and says so", () => {
		const model = new GraphModel(root);
		const many = Array.from({ length: 5_000 }, (_, at) => named(`m${at}`, `Kind${at % 400}`));
		model.surround(root, {
			relations: many.map((each) => relation(each, "block", root)),
			hidden: 0,
		});
		const { nodes, clusters, isCut } = model.view();
		expect(nodes.length + clusters.length).toBe(graphLimits.drawn);
		expect(isCut).toBe(true);
	});
});
