import { idOf, referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { album, labelReference, names } from "./albums.fixture.ts";
import { Album, Artist, Label, Region } from "./demo-types.fixture.ts";
import {
	boundReferencesIndex,
	createCache,
	ownerIndex,
	type ReferenceLike,
	referenceKey,
	referenceKeyWithUid,
} from "./index.ts";

const tenancy = { partition: "p", namespace: "n" };

describe("the key of a reference", () => {
	it("omits uid, section and group version", () => {
		const key = ["demo", "Artist", "p", "n", "miles"];
		expect(referenceKey(idOf(Artist, "miles", tenancy, "01JD"))).toEqual(key);
		expect(referenceKey(referenceTo(idOf(Artist, "miles", tenancy), "trumpet"))).toEqual(key);
		expect(
			referenceKey({ type: { ...Artist.type, group: "demo" }, tenancy, name: "miles" }),
		).toEqual(key);
	});

	it.each<[string, ReferenceLike, unknown]>([
		["nothing", {}, []],
		["a type", { type: Artist.type }, ["demo", "Artist"]],
		["a type without a kind", { type: { group: "demo", kind: "" } }, ["demo"]],
		["a partition", { type: Artist.type, tenancy: { partition: "p" } }, ["demo", "Artist", "p"]],
		[
			"all partitions",
			{ type: Artist.type, tenancy: { partition: "*", namespace: "n" }, name: "a" },
			["demo", "Artist"],
		],
		[
			"all namespaces",
			{ type: Artist.type, tenancy: { partition: "p", namespace: "*" }, name: "a" },
			["demo", "Artist", "p"],
		],
		["all names", { type: Artist.type, tenancy, name: "*" }, ["demo", "Artist", "p", "n"]],
		[
			"a name of a partition",
			{ type: Label.type, tenancy: { partition: "p" }, name: "a" },
			["demo", "Label", "p", "", "a"],
		],
		["a name of the cluster", { type: Region.type, name: "eu" }, ["demo", "Region", "", "", "eu"]],
		[
			"the beginning of a name",
			{ type: Artist.type, tenancy, namePrefix: "mi" },
			{ segments: ["demo", "Artist", "p", "n"], segmentPrefix: "mi" },
		],
		[
			"the beginning of no name",
			{ type: Artist.type, tenancy, namePrefix: "" },
			["demo", "Artist", "p", "n"],
		],
	])("of %s ends where that does", (_, reference, key) => {
		expect(referenceKey(reference)).toEqual(key);
	});

	it("includes the uid in a variant, which is a prefix without one", () => {
		const id = idOf(Artist, "miles", tenancy, "01JD");
		expect(referenceKeyWithUid(id)).toEqual(["demo", "Artist", "p", "n", "miles", "01JD"]);
		expect(referenceKeyWithUid(referenceTo(id))).toEqual(["demo", "Artist", "p", "n", "miles"]);
		expect(referenceKeyWithUid({ type: Artist.type, uid: "01JD" })).toEqual(["demo", "Artist"]);
	});
});

it("finds resources by owner and by their bound references", () => {
	const byOwner = ownerIndex(Album);
	const byMaker = ownerIndex("maker", Album);
	const byBound = boundReferencesIndex("bound", Album);
	const cache = createCache({
		types: [Album],
		indexes: [byOwner, byMaker, byBound],
		validate: true,
	});
	const miles = idOf(Artist, "miles");
	cache.insert({ ...album("a"), owner: miles });
	cache.insert(album("b", { boundReferences: [labelReference("x"), labelReference("y")] }));
	expect(names(cache.list(byOwner, miles))).toEqual(["a"]);
	expect(names(cache.list(byMaker, { type: Artist.type }))).toEqual(["a"]);
	expect(names(cache.list(byBound, labelReference("y")))).toEqual(["b"]);
	expect(byOwner.name).toBe("owner");
});
