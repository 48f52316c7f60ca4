import { clone } from "@bufbuild/protobuf";
import { DecodeError, defineType, idOf } from "@plinth/resource";
import { expect, it, vi } from "vitest";
import { type Album as AlbumMessage, AlbumSchema } from "../testdata/src/gen/demo/v2/demo_pb.ts";
import { album, labelReference, names, undecodable } from "./albums.fixture.ts";
import { Album } from "./demo-types.fixture.ts";
import {
	cloningView,
	createCache,
	ownerIndex,
	type Queries,
	referenceIndex,
	sharedView,
} from "./index.ts";

const byLabel = referenceIndex("label", Album, ({ data }) => data.label);
const blue = labelReference("blue");

function filled() {
	const cache = createCache({
		types: [Album],
		indexes: [byLabel],
		queries: { all: (cache) => cache.list(Album) },
		validate: true,
	});
	cache.insert(album("a", { title: "A", label: blue }));
	cache.insert(album("b", { title: "B", label: blue }));
	return cache;
}

it("gives each reader its own copies", () => {
	const cache = filled();
	const view = cloningView(cache);
	const read = [
		view.get(Album, idOf(Album, "a")),
		view.get(byLabel, blue),
		view.list(byLabel, blue)[0],
		view.iterate(Album).next().value,
		view.parents(byLabel, blue)[0],
		view.query("all")[0],
	];
	const original = cache.get(Album, idOf(Album, "a"));
	expect(new Set(read.map((item) => item?.resource)).size).toBe(read.length);
	for (const item of read) {
		expect(item?.resource).toEqual(original?.resource);
		expect(item?.data).toEqual(original?.data);
		if (item?.resource.id && item.data.label) {
			item.resource.id.name = "changed";
			item.data.label.name = "changed";
		}
	}
	expect(original?.resource.id?.name).toBe("a");
	expect(original?.data.label?.name).toBe("blue");
});

it("copies with the cloner of the type, one at a time in iterators", () => {
	const cloner = vi.fn((message: AlbumMessage) => clone(AlbumSchema, message));
	const Cloned = defineType(AlbumSchema, { clone: cloner });
	const cache = createCache({ types: [Cloned] });
	cache.insert(album("a"));
	cache.insert(album("b"));
	const iterator = cloningView(cache).iterate(Cloned);
	expect(cloner).not.toHaveBeenCalled();
	iterator.next();
	expect(cloner).toHaveBeenCalledTimes(1);
});

it("returns undefined or nothing like the cache", () => {
	const view = cloningView(filled());
	expect(view.get(Album, idOf(Album, "x"))).toBeUndefined();
	expect(view.list(byLabel, labelReference("x"))).toEqual([]);
});

it("reads the cache as it was when an iterator was opened", () => {
	const cache = filled();
	const iterator = cloningView(cache).iterate(Album);
	cache.delete(idOf(Album, "a"));
	cache.insert(album("c"));
	expect(names(iterator)).toEqual(["a", "b"]);
});

it("copies a resource that can't be decoded, and throws when its data is read", () => {
	const cache = createCache<Queries>({ types: [Album], indexes: [ownerIndex(Album)] });
	const broken = undecodable("a");
	cache.insert(broken);
	cache.insert(album("b"));
	const [first, second] = cloningView(cache).iterate(Album);
	expect(first?.resource).toEqual(broken);
	expect(first?.resource).not.toBe(broken);
	expect(() => first?.data).toThrow(DecodeError);
	expect(second?.data.$typeName).toBe("demo.v2.Album");
});

it("returns the cached objects, typed as read-only", () => {
	const cache = filled();
	const view = sharedView(cache);
	expect(view.get(Album, idOf(Album, "a"))).toBe(cache.get(Album, idOf(Album, "a")));
	expect(view.query("all")[0]).toBe(view.list(Album)[0]);
	expect(view).not.toHaveProperty("insert");
	expect(cloningView(cache)).not.toHaveProperty("insert");
});
