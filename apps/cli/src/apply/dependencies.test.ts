import { createRegistry } from "@bufbuild/protobuf";
import { KnownTypes } from "@plinth/documents";
import { parseDocuments, readDocument } from "@plinth/documents/yaml";
import { Namespace, Partition } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Film, Hall, Screening } from "../cinema.fixture.ts";
import { dependenciesOf } from "./dependencies.ts";

const all = [Film, Hall, Screening, Namespace, Partition];
const types = new KnownTypes(
	all.map(({ type, key, scope, schema }) => ({ type, key, scope, schema })),
	createRegistry(...all.map(({ schema }) => schema.file)),
);
const place = { partition: "default", namespace: "default" };

/** The dependencies of documents, which are given by their fields in JSON. */
function dependencies(...documents: readonly object[]): readonly (readonly number[])[] {
	const wanted = parseDocuments("test", JSON.stringify(documents)).map((source) => {
		const resource = readDocument(source, { types, place });
		if (resource === undefined) {
			throw new Error(JSON.stringify(source.problems));
		}
		return resource;
	});
	return dependenciesOf(wanted, types).map((each) => [...each].sort());
}

const film = (name: string, more: object = {}) => ({ type: "Film", name, ...more });

describe("a document depends on", () => {
	it("its partition and namespace", () => {
		expect(
			dependencies(
				film("a", { partition: "eu", namespace: "shop" }),
				{ type: "Namespace", name: "shop", partition: "eu" },
				{ type: "Partition", name: "eu" },
				{ type: "Namespace", name: "shop" },
				{ type: "Hall", name: "one", partition: "eu" },
				film("b"),
			),
		).toEqual([[1, 2], [2], [], [], [2], []]);
	});

	it("its owner, and its owners elsewhere", () => {
		expect(
			dependencies(
				film("a", { owner: { type: "Film", name: "b" } }),
				film("b"),
				film("c", { owner_references: [{ type: "Film", name: "a" }] }),
				film("d", { owner_references: [{ type: "Film", name: "a", region: "eu" }] }),
			),
		).toEqual([[1], [], [0], []]);
	});

	it("what its data references, with or without the type of the target", () => {
		const to = (name: string, more: object = {}) => ({ name, ...more });
		expect(
			dependencies(
				{ type: "Screening", name: "a", data: { film: to("f"), after: to("b") } },
				{ type: "Screening", name: "b", data: { film: to("f", { tenancy: { namespace: "x" } }) } },
				film("f"),
				film("f", { namespace: "x" }),
				film("g", { data: { sequel_of: { type: "Film", name: "f" } } }),
				film("h", { data: { sequel_of: { name: "f" } } }),
			),
		).toEqual([[1, 2], [3], [], [], [2], []]);
	});

	it("the document before it of the same resource, and not on itself", () => {
		const self = { data: { sequel_of: { type: "Film", name: "a" } } };
		expect(dependencies(film("a", self), film("b"), film("a", self), film("a"))).toEqual([
			...[[], [], [0], [2]],
		]);
	});

	it("the others of a cycle", () => {
		const after = (name: string) => ({ data: { after: { name } } });
		expect(
			dependencies(
				{ type: "Screening", name: "a", ...after("b") },
				{ type: "Screening", name: "b", ...after("a") },
			),
		).toEqual([[1], [0]]);
	});
});
