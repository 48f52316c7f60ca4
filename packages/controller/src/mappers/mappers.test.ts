import { cloningView, createCache, ownerIndex, referenceIndex } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import { type Decoded, decode, idOf, nameKey } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import type { MapperContext } from "../define/context.ts";
import { isReadOnly, type Mapper } from "../define/mapper.ts";
import { Album, Artist, type DemoType, demo, Label } from "../demo-types.fixture.ts";
import { cacheGet, cacheList, cacheParents } from "./cache-lookup.ts";
import { chain, merge, transform } from "./combinators.ts";
import { inTenancy, named, ofType } from "./id-modifier.ts";
import { mapOwner, ownerOfType } from "./owner.ts";
import { sameNameAs } from "./same-name.ts";

/** Artists by the label that their data names. */
const artistsByLabel = referenceIndex("label", Artist, ({ data }) => idOf(Label, data.value));
const albumsByOwner = ownerIndex(Album);

const resources = [
	demo(Artist, "miles", "columbia"),
	demo(Artist, "nina", "philips"),
	demo(Artist, "thelonious", "columbia"),
	demo(Album, "blue", "", { owner: idOf(Artist, "miles") }),
	demo(Label, "columbia"),
];

function context(): MapperContext {
	const cache = createCache({
		types: [Artist, Album, Label],
		indexes: [artistsByLabel, albumsByOwner],
	});
	for (const resource of resources) {
		cache.insert(resource);
	}
	return { cache: cloningView(cache), logger: silentLogger, signal: new AbortController().signal };
}

async function mapped(
	mapper: Mapper<DemoType["schema"]>,
	changed: Decoded<DemoType["schema"]>,
): Promise<string[]> {
	return Array.from(await mapper(context(), changed), (id: ID) => nameKey(id)).sort();
}

const album = decode(Album, demo(Album, "blue", "", { owner: idOf(Artist, "miles") }));
const orphan = decode(Album, demo(Album, "orphan"));
const label = decode(Label, demo(Label, "columbia"));
const miles = "demo.Artist/default/default/miles";
const nina = "demo.Artist/default/default/nina";
const thelonious = "demo.Artist/default/default/thelonious";

describe("mappers", () => {
	it("map to the owner, of any type or of one", async () => {
		expect(await mapped(mapOwner, album)).toEqual([miles]);
		expect(await mapped(mapOwner, orphan)).toEqual([]);
		expect(await mapped(ownerOfType(Artist), album)).toEqual([miles]);
		expect(await mapped(ownerOfType(Label), album)).toEqual([]);
		expect(await mapped(ownerOfType(Artist), orphan)).toEqual([]);
	});

	it("map to the same name under another type", async () => {
		expect(await mapped(sameNameAs(Artist), label)).toEqual([
			"demo.Artist/default/default/columbia",
		]);
	});

	it("map to the resources found in the cache, and to nothing if none is found", async () => {
		const byName = (name: string) =>
			cacheGet(
				Artist,
				ofType(Artist),
				named(() => name),
			);
		expect(await mapped(byName("nina"), label)).toEqual([nina]);
		expect(await mapped(byName("nobody"), label)).toEqual([]);
		expect(await mapped(cacheGet(artistsByLabel), label)).toEqual([miles]);
	});

	it("map to all that refer to the changed resource", async () => {
		expect(await mapped(cacheList(artistsByLabel), label)).toEqual([miles, thelonious]);
		const elsewhere = cacheList(artistsByLabel, inTenancy({ namespace: "elsewhere" }));
		expect(await mapped(elsewhere, label)).toEqual([]);
	});

	it("map to the parents of the changed resource's ID", async () => {
		expect(await mapped(cacheParents(artistsByLabel), label)).toEqual([miles, thelonious]);
		expect(await mapped(cacheParents(Artist, ofType(Artist)), label)).toEqual([]);
	});

	it("chain through cached resources in between", async () => {
		const peers = chain(
			mapOwner,
			Artist,
			transform(
				(_, { data }) => [decode(Label, demo(Label, data.value))],
				cacheList(artistsByLabel),
			),
		);
		expect(await mapped(peers, album)).toEqual([miles, thelonious]);
		expect(await mapped(peers, orphan)).toEqual([]);
	});

	it("merge to what any of them maps to", async () => {
		const both = merge(mapOwner, () => [idOf(Artist, "nina")]);
		expect(await mapped(both, album)).toEqual([miles, nina]);
	});

	it("yield no requests at all if a part fails", async () => {
		const failing: Mapper = () => {
			throw new Error("no");
		};
		await expect(mapped(merge(mapOwner, failing), album)).rejects.toThrow("no");
		await expect(mapped(chain(mapOwner, Artist, failing), album)).rejects.toThrow("no");
		await expect(
			mapped(
				transform(() => [label, album], failing),
				album,
			),
		).rejects.toThrow("no");
	});

	it("receive shared resources only if all parts are read-only", () => {
		expect(isReadOnly(merge(mapOwner, cacheList(artistsByLabel)))).toBe(true);
		expect(isReadOnly(chain(mapOwner, Artist, cacheGet(albumsByOwner)))).toBe(true);
		expect(isReadOnly(merge(mapOwner, () => []))).toBe(false);
		expect(isReadOnly(transform(() => [], mapOwner))).toBe(false);
	});
});
