import { create } from "@bufbuild/protobuf";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { expect, expectTypeOf, it } from "vitest";
import { type Album as AlbumMessage, AlbumSchema } from "../testdata/src/gen/demo/v2/demo_pb.ts";
import { Album, Artist, Label } from "./demo-types.fixture.ts";
import {
	boundReferencesIndex,
	cloningView,
	createCache,
	type DeepReadonly,
	defineIndex,
	ownerIndex,
	type Reader,
	type ReferenceLike,
	referenceKey,
	sharedView,
} from "./index.ts";

const byLabel = defineIndex("label", Album, {
	keys: (album) => (album.data.label ? [referenceKey(album.data.label)] : []),
	key: (label: ReferenceLike) => referenceKey(label),
});
const byTitle = defineIndex("title", Album, {
	keys: (album) => [[album.data.title]],
	key: (title: string, exact: boolean) =>
		exact ? [title] : { segments: [], segmentPrefix: title },
});

function makeCache() {
	return createCache({
		types: [Artist, Album],
		indexes: [byLabel, byTitle, ownerIndex(Album), boundReferencesIndex("bound", Album)],
		queries: {
			titles: (cache, label: ReferenceLike) => cache.list(byLabel, label).map((a) => a.data),
		},
		validate: true,
	});
}

const bluenote = referenceTo({ type: Label.type, tenancy: { partition: "p" }, name: "bluenote" });
const kind = resourceOf(Album, {
	id: idOf(Album, "kind-of-blue", { partition: "p", namespace: "n" }),
	data: create(AlbumSchema, { title: "Kind of Blue", label: bluenote }),
});

it("infers the types of items, arguments and results", () => {
	const cache = makeCache();
	cache.insert(kind);
	const got = cache.get(Album, {
		tenancy: { partition: "p", namespace: "n" },
		name: "kind-of-blue",
	});
	expectTypeOf(got?.data).toEqualTypeOf<AlbumMessage | undefined>();
	expect(got?.data.title).toBe("Kind of Blue");
	expect(cache.list(byLabel, bluenote)[0]).toBe(got);
	expectTypeOf(cache.query("titles", bluenote)).toEqualTypeOf<AlbumMessage[]>();
	expect(cache.query("titles", bluenote)).toHaveLength(1);
	expectTypeOf(sharedView(cache).query("titles", bluenote)).toEqualTypeOf<
		DeepReadonly<AlbumMessage[]>
	>();
	expectTypeOf(cloningView(cache)).toExtend<Reader>();
	expect(cloningView(cache).get(byTitle, "Kind of Blue", true)).not.toBe(got);
	expect(cloningView(cache).get(byTitle, "Kind of Blue", true)?.data).toEqual(got?.data);
	for (const album of cache.iterate(byTitle, "Kind", false)) {
		expectTypeOf(album.data).toEqualTypeOf<AlbumMessage>();
	}
	// Never called: what is below must not compile.
	const wrong = () => {
		// @ts-expect-error an argument too few
		cache.get(byTitle, "Kind of Blue");
		// @ts-expect-error not the argument of the index
		cache.list(byLabel, 1);
		// @ts-expect-error no such query
		cache.query("nope");
		// @ts-expect-error artists have no bound references
		boundReferencesIndex("bound", Artist);
		const item = sharedView(cache).get(Album, bluenote);
		// @ts-expect-error shared items are read-only
		if (item) item.data.title = "";
	};
	expect(wrong).toBeTypeOf("function");
});
